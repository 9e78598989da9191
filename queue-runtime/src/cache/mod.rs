//! The in-process cache that refresh jobs publish to.
//!
//! A refresh takes a ticket before it reads the data and publishes under it afterwards; the rule
//! in `rules::coherence` judges. What the cache knows about a key (its incarnation and the
//! version floor) outlives the value, so a late fill of older data finds the floor. If that
//! knowledge is lost to eviction, the next ticket has a new incarnation and old tickets are void.
//!
//! Writes go through moka's per-key compute only: its `insert` and `get_with` can put an old
//! value back over a newer one.

use std::sync::Arc;
use std::time::Duration;

use moka::ops::compute::Op;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::job::CacheKey;
use crate::rules::coherence::{self, EntryState, Publish, Refresh, Renew};
use crate::seam::Seam;
use crate::store::Versions;

/// The most bytes that keys and values take together; the least used are forgotten first.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What a key costs beside its own bytes and its value's.
const ENTRY_BYTES: usize = 128;

/// The largest value that is kept, in bytes of JSON; a larger one is left to its readers to load.
const VALUE_BYTES_MAX: usize = 1024 * 1024;

/// After this a value is returned as stale.
const SOFT: Duration = Duration::from_secs(60);

/// After this a value is not returned any more.
const HARD: Duration = Duration::from_mins(5);

/// Values published by refresh jobs of this process, by cache key. Clones share it.
#[derive(Clone, Debug)]
pub struct Cache {
    seam: Arc<dyn Seam>,
    entries: moka::sync::Cache<String, Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    state: EntryState,
    /// The JSON of the value; `None` for a tombstone or when nothing is stored.
    json: Option<Arc<str>>,
    published_at: Duration,
}

fn weight(key: &str, entry: &Entry) -> u32 {
    let value = entry.json.as_ref().map_or(0, |json| json.len());
    u32::try_from(ENTRY_BYTES + key.len() + value).unwrap_or(u32::MAX)
}

/// A cached value and what is known about its age.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached<T> {
    /// The value.
    pub value: T,
    /// The version of the data that it shows.
    pub version: u64,
    /// Whether it is older than a minute, or a newer version is known.
    pub is_stale: bool,
}

/// A refreshed cache value as JSON, or the news that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RefreshedValue {
    At { version: u64, json: String },
    Gone,
    Unchanged,
}

/// The right to publish one refresh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ticket {
    key: String,
    incarnation: u64,
    floor: u64,
}

/// What preparing a refresh came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Run(Ticket),
    Superseded { newest: u64 },
}

/// What publishing a refresh came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Published {
    /// Readers see it, or it changed nothing that they see.
    Done,
    /// The handler read data older than the version it was enqueued for: a lagging replica.
    LagsBehind,
    /// The cache lost the key meanwhile: take a new ticket and read again.
    LostIncarnation,
}

impl Cache {
    pub(crate) fn new(seam: Arc<dyn Seam>) -> Self {
        Self {
            seam,
            entries: moka::sync::Cache::builder()
                .max_capacity(BYTES_MAX)
                .weigher(|key: &String, entry: &Entry| weight(key, entry))
                .build(),
        }
    }

    /// Returns the value under a key, as the type it was published as; `None` if there is none,
    /// it is older than five minutes, the thing is gone, or it is not such a type.
    ///
    /// ```
    /// use queue_runtime::Queue;
    ///
    /// fn load(user_id: i64) -> String {
    ///     format!("user {user_id}")
    /// }
    ///
    /// /// What a refresh job published in this process, or else the data themselves.
    /// fn user_name(queue: &Queue, user_id: i64) -> String {
    ///     match queue.cache().get::<String>(&format!("user:{user_id}")) {
    ///         Some(cached) if !cached.is_stale => cached.value,
    ///         _ => load(user_id),
    ///     }
    /// }
    ///
    /// assert_eq!(user_name(&Queue::in_memory(), 7), "user 7");
    /// ```
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<Cached<T>> {
        let entry = self.entries.get(key)?;
        let age = self.seam.elapsed().saturating_sub(entry.published_at);
        let (version, json) = (entry.state.stored?, entry.json?);
        if age >= HARD {
            return None;
        }
        Some(Cached {
            value: serde_json::from_str(&json).ok()?,
            version,
            is_stale: age >= SOFT || version < entry.state.floor,
        })
    }

    /// Notes that a newer version of the data exists, so that an older value is stale at once.
    pub(crate) fn announce(&self, newest: &CacheKey) {
        self.change(&newest.key, |entry| {
            let entry = entry?;
            let floor = newest.version.max(entry.state.floor);
            Some(Entry {
                state: EntryState {
                    floor,
                    ..entry.state
                },
                ..entry
            })
        });
    }

    /// Takes a ticket: lease first, then the registry. Swapping the two would miss a version
    /// that is announced in between.
    pub(crate) async fn prepare(
        &self,
        registry: &dyn Versions,
        wanted: &CacheKey,
    ) -> Result<Prepared, StoreError> {
        let incarnation = self.lease(&wanted.key);
        let newest = registry.newest_version(&wanted.key).await?;
        Ok(match coherence::begin(wanted.version, newest) {
            Refresh::Superseded { newest } => Prepared::Superseded { newest },
            Refresh::Run { floor } => {
                self.raise_floor(&wanted.key, incarnation, floor);
                Prepared::Run(Ticket {
                    key: wanted.key.clone(),
                    incarnation,
                    floor,
                })
            }
        })
    }

    /// Publishes what a refresh returned, if it may still appear.
    pub(crate) fn publish(&self, ticket: &Ticket, found: &RefreshedValue) -> Published {
        let (version, json) = match found {
            RefreshedValue::At { json, .. } if json.len() > VALUE_BYTES_MAX => {
                tracing::warn!(
                    key = ticket.key,
                    bytes = json.len(),
                    "too large to be cached"
                );
                return Published::Done;
            }
            RefreshedValue::At { version, json } => (*version, Some(Arc::from(json.as_str()))),
            RefreshedValue::Gone => (ticket.floor, None),
            RefreshedValue::Unchanged => return self.renew(ticket),
        };
        if version < ticket.floor {
            return Published::LagsBehind;
        }
        let now = self.seam.elapsed();
        let mut published = Published::Done;
        self.change(&ticket.key, |entry| {
            let Some(entry) = entry else {
                published = Published::LostIncarnation;
                return None;
            };
            match coherence::publish(entry.state, ticket.incarnation, version) {
                Publish::Store => {
                    let state = EntryState {
                        floor: version,
                        stored: Some(version),
                        ..entry.state
                    };
                    Some(Entry {
                        state,
                        json: json.clone(),
                        published_at: now,
                    })
                }
                Publish::NotNewer if entry.state.stored == Some(version) => Some(Entry {
                    published_at: now,
                    ..entry
                }),
                Publish::NotNewer | Publish::BelowFloor => None,
                Publish::LostIncarnation => {
                    published = Published::LostIncarnation;
                    None
                }
            }
        });
        published
    }

    fn renew(&self, ticket: &Ticket) -> Published {
        let now = self.seam.elapsed();
        let mut published = Published::LostIncarnation;
        self.change(&ticket.key, |entry| {
            let entry = entry?;
            match coherence::renew(entry.state, ticket.incarnation, ticket.floor) {
                Renew::Keep { version } => {
                    published = Published::Done;
                    let state = EntryState {
                        stored: Some(version),
                        ..entry.state
                    };
                    Some(Entry {
                        state,
                        published_at: now,
                        ..entry
                    })
                }
                Renew::Nothing => {
                    published = Published::Done;
                    None
                }
                Renew::LostIncarnation => None,
            }
        });
        published
    }

    /// Reads or creates what is known about a key and returns its incarnation.
    fn lease(&self, key: &str) -> u64 {
        let (mut incarnation, now) = (self.seam.random(), self.seam.elapsed());
        self.change(key, |entry| match entry {
            Some(entry) => {
                incarnation = entry.state.incarnation;
                None
            }
            None => {
                let state = EntryState {
                    incarnation,
                    floor: 0,
                    stored: None,
                };
                Some(Entry {
                    state,
                    json: None,
                    published_at: now,
                })
            }
        });
        incarnation
    }

    fn raise_floor(&self, key: &str, incarnation: u64, floor: u64) {
        self.change(key, |entry| {
            let entry = entry.filter(|entry| entry.state.incarnation == incarnation)?;
            let floor = floor.max(entry.state.floor);
            Some(Entry {
                state: EntryState {
                    floor,
                    ..entry.state
                },
                ..entry
            })
        });
    }

    /// Changes one key atomically; `None` leaves it as it is.
    fn change(&self, key: &str, change: impl FnOnce(Option<Entry>) -> Option<Entry>) {
        self.entries.entry_by_ref(key).and_compute_with(|entry| {
            match change(entry.map(moka::Entry::into_value)) {
                Some(changed) => Op::Put(changed),
                None => Op::Nop,
            }
        });
    }

    /// Forgets a key, as eviction does.
    #[cfg(test)]
    fn evict(&self, key: &str) {
        self.entries.invalidate(key);
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::seam::SystemSeam;

    #[derive(Default)]
    struct Registry(Option<u64>);

    #[async_trait]
    impl Versions for Registry {
        async fn newest_version(&self, _: &str) -> Result<Option<u64>, StoreError> {
            Ok(self.0)
        }
    }

    fn cache() -> Cache {
        Cache::new(Arc::new(SystemSeam::new()))
    }

    fn wanted(version: u64) -> CacheKey {
        CacheKey {
            key: "user:7".to_owned(),
            version,
        }
    }

    fn value(version: u64) -> RefreshedValue {
        RefreshedValue::At {
            version,
            json: version.to_string(),
        }
    }

    async fn ticket(cache: &Cache, version: u64) -> Ticket {
        match cache.prepare(&Registry(None), &wanted(version)).await {
            Ok(Prepared::Run(ticket)) => ticket,
            other => panic!("no ticket: {other:?}"),
        }
    }

    fn cached(cache: &Cache) -> Option<u64> {
        cache.get::<u64>("user:7").map(|cached| cached.value)
    }

    #[tokio::test]
    async fn every_order_of_five_versions_ends_at_the_newest() {
        let mut orders = vec![vec![]];
        for _ in 0..5 {
            orders = orders
                .into_iter()
                .flat_map(|order: Vec<u64>| {
                    (1..=5)
                        .filter(|v| !order.contains(v))
                        .map(|v| [&order[..], &[v]].concat())
                        .collect::<Vec<_>>()
                })
                .collect();
        }
        assert_eq!(orders.len(), 120);
        for order in orders {
            let cache = cache();
            let mut tickets = Vec::new();
            for version in &order {
                tickets.push(ticket(&cache, *version).await);
            }
            for (ticket, version) in tickets.iter().zip(&order) {
                cache.publish(ticket, &value(*version));
            }
            assert_eq!(cached(&cache), Some(5), "{order:?}");
        }
    }

    #[tokio::test]
    async fn a_refresh_that_read_early_does_not_overwrite_a_newer_value() {
        let cache = cache();
        let old = ticket(&cache, 1).await;
        let new = ticket(&cache, 2).await;
        assert_eq!(cache.publish(&new, &value(2)), Published::Done);
        assert_eq!(cache.publish(&old, &value(1)), Published::Done);
        assert_eq!(cached(&cache), Some(2));
    }

    #[tokio::test]
    async fn an_announced_version_supersedes_an_older_job() {
        let prepared = cache()
            .prepare(&Registry(Some(9)), &wanted(8))
            .await
            .expect("a registry");
        assert_eq!(prepared, Prepared::Superseded { newest: 9 });
    }

    #[tokio::test]
    async fn a_lagging_read_is_not_published() {
        let cache = cache();
        let ticket = ticket(&cache, 5).await;
        assert_eq!(cache.publish(&ticket, &value(4)), Published::LagsBehind);
        assert_eq!(cached(&cache), None);
    }

    #[tokio::test]
    async fn a_ticket_from_before_an_eviction_is_void() {
        let cache = cache();
        let before = ticket(&cache, 1).await;
        cache.evict("user:7");
        assert_eq!(
            cache.publish(&before, &value(1)),
            Published::LostIncarnation
        );
        let after = ticket(&cache, 1).await;
        assert_eq!(
            cache.publish(&before, &value(1)),
            Published::LostIncarnation
        );
        assert_eq!(cache.publish(&after, &value(1)), Published::Done);
        assert_eq!(cached(&cache), Some(1));
    }

    #[tokio::test]
    async fn a_tombstone_hides_the_value_and_refuses_older_ones() {
        let cache = cache();
        let first = ticket(&cache, 1).await;
        cache.publish(&first, &value(1));
        let gone = ticket(&cache, 2).await;
        cache.publish(&gone, &RefreshedValue::Gone);
        cache.publish(&first, &value(1));
        assert_eq!(cached(&cache), None);
    }

    #[tokio::test]
    async fn a_known_newer_version_makes_the_value_stale_before_it_is_published() {
        let cache = cache();
        let first = ticket(&cache, 1).await;
        cache.publish(&first, &value(1));
        ticket(&cache, 2).await;
        let seen = cache
            .get::<u64>("user:7")
            .expect("the old value is still there");
        assert_eq!((seen.value, seen.is_stale), (1, true));
    }

    #[tokio::test]
    async fn a_value_that_was_found_unchanged_is_fresh_again() {
        let cache = cache();
        let first = ticket(&cache, 1).await;
        cache.publish(&first, &value(1));
        let second = ticket(&cache, 2).await;
        assert_eq!(
            cache.publish(&second, &RefreshedValue::Unchanged),
            Published::Done
        );
        let seen = cache.get::<u64>("user:7").expect("it was kept");
        assert_eq!((seen.value, seen.version, seen.is_stale), (1, 2, false));
        cache.evict("user:7");
        assert_eq!(
            cache.publish(&second, &RefreshedValue::Unchanged),
            Published::LostIncarnation
        );
    }

    #[tokio::test]
    async fn a_value_too_large_to_keep_leaves_the_one_before_stale() {
        let cache = cache();
        let first = ticket(&cache, 1).await;
        cache.publish(&first, &value(1));
        let second = ticket(&cache, 2).await;
        let json = format!("\"{}\"", "x".repeat(VALUE_BYTES_MAX));
        cache.publish(&second, &RefreshedValue::At { version: 2, json });
        assert!(cache.get::<u64>("user:7").is_some_and(|seen| seen.is_stale));
    }
}
