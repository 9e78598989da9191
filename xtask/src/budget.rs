//! Seconds that each suite may take, and the table that shows what it took.
//!
//! A budget is looked at, not enforced: seconds on a shared machine are no ground to refuse a
//! change, and a suite that creeps up shows in the table long before it hurts.

use crate::report::Suite;

/// Budgets for suites that start processes, compilers or real stores.
const BUDGETS: [(&str, u32); 13] = [
    ("conformance", 180),
    ("deploying", 60),
    ("faults", 90),
    ("histories", 240),
    ("it", 120),
    ("known_bad", 60),
    ("own_servers", 60),
    ("pooled", 180),
    ("queue_runtime", 60),
    ("servers", 60),
    ("tidy", 10),
    ("torture", 360),
    ("ui", 480),
];

/// Everything else runs in one process on the memory store.
const BUDGET: u32 = 30;

/// The table: suite, tests, seconds, budget; slowest first, suites without a test left out.
pub(crate) fn table(suites: &[Suite]) -> String {
    let mut suites: Vec<&Suite> = suites.iter().filter(|suite| suite.tests > 0).collect();
    suites.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.name.cmp(&b.name)));
    let mut table = format!(
        "{:<24} {:>6} {:>9} {:>7}\n",
        "suite", "tests", "seconds", "budget"
    );
    for Suite {
        name,
        tests,
        seconds,
    } in suites
    {
        let budget = of(name);
        let over = if *seconds > f64::from(budget) {
            "  over budget"
        } else {
            ""
        };
        table.push_str(&format!(
            "{name:<24} {tests:>6} {seconds:>9.2} {budget:>7}{over}\n"
        ));
    }
    table
}

fn of(suite: &str) -> u32 {
    BUDGETS
        .iter()
        .find(|(name, _)| *name == suite)
        .map_or(BUDGET, |(_, seconds)| *seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_suite_is_first_and_one_over_its_budget_says_so() {
        let suite = |name: &str, tests, seconds| Suite {
            name: name.to_owned(),
            tests,
            seconds,
        };
        let table = table(&[
            suite("tidy", 9, 0.5),
            suite("queue_macros", 0, 0.0),
            suite("pure", 3, 31.0),
        ]);
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "suite                     tests   seconds  budget",
                "pure                          3     31.00      30  over budget",
                "tidy                          9      0.50      10",
            ]
        );
    }
}
