//! When a refresh may run and when its value may be published.
//!
//! The order is fixed: lease, then registry, then row, then checked publish. Each check is
//! needed: without the floor an old fill overtakes an invalidation, without the incarnation a
//! lost cache forgets its floor, without the registry a lost floor is believed to be absent.

/// What the registry says about a job that was made for version `own`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// A newer version is known: the job has nothing to add.
    Superseded {
        /// The newest known version.
        newest: u64,
    },
    /// The job may run; nothing older than `floor` may be published.
    Run {
        /// The lowest version that may be published.
        floor: u64,
    },
}

/// Compares a refresh job's version with the newest one in the registry, if there is one.
pub fn begin(own: u64, newest: Option<u64>) -> Refresh {
    match newest {
        Some(newest) if newest > own => Refresh::Superseded { newest },
        _ => Refresh::Run { floor: own },
    }
}

/// What a cache knows about one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryState {
    /// A random id, new whenever the cache has lost what it knew about the key.
    pub incarnation: u64,
    /// The lowest version that the entry may hold; outlives the value.
    pub floor: u64,
    /// The version that it holds (a tombstone counts), if any.
    pub stored: Option<u64>,
}

/// What a cache does with a value that a refresh returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publish {
    /// Stores it.
    Store,
    /// Has lost the entry since the job took its ticket: start again.
    LostIncarnation,
    /// Knows of a newer version: the value must not appear.
    BelowFloor,
    /// Holds this version or a newer one already; only its age may be renewed.
    NotNewer,
}

/// Decides whether a value of `version` may be published under a ticket of `incarnation`.
pub fn publish(entry: EntryState, incarnation: u64, version: u64) -> Publish {
    if entry.incarnation != incarnation {
        return Publish::LostIncarnation;
    }
    if version < entry.floor {
        return Publish::BelowFloor;
    }
    match entry.stored {
        Some(stored) if stored >= version => Publish::NotNewer,
        _ => Publish::Store,
    }
}

/// What a cache does when a refresh found that nothing has changed up to version `floor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renew {
    /// Keeps the value, which is now known to be right at this version.
    Keep {
        /// The version.
        version: u64,
    },
    /// Has no value to keep.
    Nothing,
    /// Has lost the entry since the job took its ticket: start again.
    LostIncarnation,
}

/// Decides what "unchanged" means for an entry, under a ticket of `incarnation` and `floor`.
pub fn renew(entry: EntryState, incarnation: u64, floor: u64) -> Renew {
    if entry.incarnation != incarnation {
        return Renew::LostIncarnation;
    }
    match entry.stored {
        Some(stored) => Renew::Keep {
            version: stored.max(floor),
        },
        None => Renew::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: EntryState = EntryState {
        incarnation: 9,
        floor: 4,
        stored: Some(5),
    };

    #[test]
    fn a_job_older_than_the_newest_version_is_superseded() {
        assert_eq!(begin(3, Some(4)), Refresh::Superseded { newest: 4 });
        assert_eq!(begin(4, Some(4)), Refresh::Run { floor: 4 });
        assert_eq!(begin(4, None), Refresh::Run { floor: 4 });
    }

    #[test]
    fn the_registry_never_lowers_a_jobs_own_floor() {
        assert_eq!(begin(5, Some(4)), Refresh::Run { floor: 5 });
    }

    #[test]
    fn only_a_newer_value_of_the_same_incarnation_is_stored() {
        assert_eq!(publish(ENTRY, 9, 6), Publish::Store);
        assert_eq!(publish(ENTRY, 9, 5), Publish::NotNewer);
        assert_eq!(publish(ENTRY, 9, 4), Publish::NotNewer);
        assert_eq!(publish(ENTRY, 9, 3), Publish::BelowFloor);
        assert_eq!(publish(ENTRY, 8, 6), Publish::LostIncarnation);
    }

    #[test]
    fn a_floor_outlives_its_value() {
        let evicted = EntryState {
            stored: None,
            ..ENTRY
        };
        assert_eq!(publish(evicted, 9, 3), Publish::BelowFloor);
        assert_eq!(publish(evicted, 9, 4), Publish::Store);
    }

    #[test]
    fn an_unchanged_value_is_right_at_the_version_it_was_checked_for() {
        assert_eq!(renew(ENTRY, 9, 7), Renew::Keep { version: 7 });
        assert_eq!(renew(ENTRY, 9, 4), Renew::Keep { version: 5 });
        assert_eq!(
            renew(
                EntryState {
                    stored: None,
                    ..ENTRY
                },
                9,
                7
            ),
            Renew::Nothing
        );
        assert_eq!(renew(ENTRY, 8, 7), Renew::LostIncarnation);
    }
}
