//! The cases as values, for a program that runs the suite itself.

use super::{Fixture, run};

/// One case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    family: &'static str,
    name: &'static str,
    run: fn(Box<dyn Fixture>),
}

/// Returns every case that is asked of every store, and those of the families named here, which
/// only some stores promise: `wakes`, `durable`.
pub fn cases(also: &[&str]) -> Vec<Case> {
    let (mut cases, mut optional) = (Vec::new(), Vec::<Case>::new());
    crate::conformance_families!([conformance_values cases]);
    crate::conformance_family!([conformance_values optional] wakes);
    crate::conformance_family!([conformance_values optional] durable);
    optional.retain(|case| also.contains(&case.family));
    cases.extend(optional);
    cases
}

impl Case {
    /// Returns the name of its family.
    pub const fn family(&self) -> &'static str {
        self.family
    }

    /// Returns its name, which is its promise.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Runs the case on a fresh store, as its test does.
    ///
    /// # Panics
    /// If the store does not keep the promise.
    pub fn run(&self, fixture: impl Fixture) {
        (self.run)(Box::new(fixture));
    }
}

/// Adds a list of cases to a vector of values; only this file has what they are made of.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_values {
    ([$cases:ident] $family:ident: $($case:ident)+) => {
        $cases.extend([$(Case {
            family: stringify!($family),
            name: stringify!($case),
            run: |fixture| run(fixture, super::$family::$case),
        }),+])
    };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_only_some_stores_promise_is_left_out_unless_it_is_named() {
        let families = |also: &[&str]| {
            let families = cases(also).into_iter().map(|case| case.family());
            families.collect::<BTreeSet<_>>()
        };
        let always = families(&[]);
        assert!(always.contains("insert") && always.contains("races_settle"));
        assert!(!always.contains("wakes") && !always.contains("durable"));
        let also: BTreeSet<_> = families(&["durable"])
            .difference(&always)
            .copied()
            .collect();
        assert_eq!(also, BTreeSet::from(["durable"]));
    }
}
