//! Which variants take turns, and how their figures are shown.

use anyhow::Result;
use queue_benches::figures::{grouped, median};

use crate::plans;
use crate::run::{Case, Commits, Outcome, measure};
use crate::statements::{Form, Layout};

/// A question and the variants that answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Suite {
    /// Raw against A and B, lanes found or remembered, with and without a held snapshot.
    Layouts,
    /// Locking lazily or in every lane, one lane and forty, one claimer and four.
    Forms,
    /// Payloads of 100 B, 8 KB and 100 KB.
    Payloads,
    /// Commits that do not wait, and shared ones.
    Commits,
    /// Which indexes the statements use, also when their parameters are not known.
    Plans,
}

impl Suite {
    pub(crate) const ALL: [Self; 5] = [
        Self::Layouts,
        Self::Forms,
        Self::Payloads,
        Self::Commits,
        Self::Plans,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|suite| format!("{suite:?}").to_lowercase() == name)
    }

    pub(crate) async fn run(self, url: &str, rounds: usize) -> Result<()> {
        if self == Self::Plans {
            return plans::check(url).await;
        }
        for (title, cases) in self.groups() {
            println!("\n## {title}");
            let mut outcomes = vec![Vec::new(); cases.len()];
            for round in 1..=rounds {
                for ((name, case), outcomes) in cases.iter().zip(&mut outcomes) {
                    let outcome = measure(url, case).await?;
                    eprintln!("round {round}, {title}, {name}: {:.0}", outcome.per_second);
                    outcomes.push(outcome);
                }
            }
            show(&cases, &outcomes);
        }
        Ok(())
    }

    /// Variants that take turns, under a title.
    fn groups(self) -> Vec<(String, Vec<(String, Case)>)> {
        match self {
            Self::Layouts => layouts(),
            Self::Forms => forms(),
            Self::Payloads => payloads(),
            Self::Commits => commits(),
            Self::Plans => Vec::new(),
        }
    }
}

const PLAIN: Case = Case {
    layout: Layout::A,
    form: Form::Bound,
    batch: 500,
    claimers: 2,
    jobs: 100_000,
    lanes: 1,
    bytes: 96,
    snapshot: false,
    spare: 1,
    commits: Commits::Two,
    pinned: true,
};

type Named = Vec<(String, Case)>;

fn layouts() -> Vec<(String, Named)> {
    let mut groups = Vec::new();
    for (snapshot, batch) in [(true, 500), (true, 50), (false, 500), (false, 50)] {
        let cases = [
            ("raw", Layout::Raw, Form::Full),
            ("A, lanes found", Layout::A, Form::Full),
            ("B, lanes found", Layout::B, Form::Full),
            ("A, lanes remembered", Layout::A, Form::Bound),
            ("B, lanes remembered", Layout::B, Form::Bound),
        ];
        let cases = cases.map(|(name, layout, form)| {
            (
                name.to_owned(),
                Case {
                    layout,
                    form,
                    batch,
                    snapshot,
                    jobs: if batch == 50 { 20_000 } else { 60_000 },
                    ..PLAIN
                },
            )
        });
        let held = if snapshot {
            "a snapshot held"
        } else {
            "no snapshot held"
        };
        groups.push((format!("batch {batch}, {held}"), cases.to_vec()));
    }
    groups
}

fn forms() -> Vec<(String, Named)> {
    let mut groups = Vec::new();
    for (lanes, claimers) in [(1, 1), (1, 4), (40, 1), (40, 4)] {
        let cases = [
            ("locks lazily, no spare", Form::Full, 0),
            ("locks lazily, spare 1 batch", Form::Full, 1),
            ("locks lazily, spare 3 batches", Form::Full, 3),
            ("locks in every lane", Form::Greedy, 0),
            ("remembered, spare 1 batch", Form::Bound, 1),
        ];
        let cases = cases.map(|(name, form, spare)| {
            (
                name.to_owned(),
                Case {
                    form,
                    spare,
                    lanes,
                    claimers,
                    batch: 100,
                    jobs: 40_000,
                    ..PLAIN
                },
            )
        });
        groups.push((
            format!("{lanes} lanes, {claimers} claimers, batch 100"),
            cases.to_vec(),
        ));
    }
    groups
}

fn payloads() -> Vec<(String, Named)> {
    let mut groups = Vec::new();
    for (bytes, jobs, batch) in [(8_192, 10_000, 100), (102_400, 1_000, 50)] {
        let cases = [Layout::A, Layout::B].map(|layout| {
            let case = Case {
                layout,
                bytes,
                jobs,
                batch,
                ..PLAIN
            };
            (format!("{layout:?}"), case)
        });
        groups.push((format!("payload {bytes} B, batch {batch}"), cases.to_vec()));
    }
    groups
}

fn commits() -> Vec<(String, Named)> {
    let mut groups = Vec::new();
    for batch in [50, 500] {
        let cases = [
            ("two commits", Commits::Two, true),
            ("the claim's does not wait", Commits::LazyClaim, true),
            ("one for settlement and next claim", Commits::Exchange, true),
            ("two commits, plans not pinned", Commits::Two, false),
        ];
        let cases = cases.map(|(name, commits, pinned)| {
            let case = Case {
                batch,
                commits,
                pinned,
                jobs: if batch == 50 { 20_000 } else { 60_000 },
                ..PLAIN
            };
            (name.to_owned(), case)
        });
        groups.push((format!("A, batch {batch}"), cases.to_vec()));
    }
    groups
}

fn show(cases: &Named, outcomes: &[Vec<Outcome>]) {
    let first = outcomes[0].clone();
    for ((name, case), outcomes) in cases.iter().zip(outcomes) {
        let rate = median_of(outcomes, |o| o.per_second);
        let ratios: Vec<f64> = outcomes
            .iter()
            .zip(&first)
            .map(|(o, first)| o.per_second / first.per_second)
            .collect();
        let least = outcomes
            .iter()
            .map(|o| o.per_second)
            .fold(f64::INFINITY, f64::min);
        let most = outcomes.iter().map(|o| o.per_second).fold(0.0, f64::max);
        let slices: Vec<String> = (0..5)
            .map(|n| {
                grouped(median_of(outcomes, |o| {
                    o.slices.get(n).copied().unwrap_or(0.0)
                }))
            })
            .collect();
        let claims: usize = outcomes.iter().map(|o| o.claims).sum();
        let short: usize = outcomes.iter().map(|o| o.short).sum();
        let in_vain: usize = outcomes.iter().map(|o| o.locked_in_vain).sum();
        let searches: usize = outcomes.iter().map(|o| o.searches).sum();
        let searching: f64 = outcomes.iter().map(|o| o.searching.as_secs_f64()).sum();
        let taken = outcomes.len() * case.jobs;
        print!(
            "{name:<36} {:>8} [{:>7} – {:>7}]  ×{:.2}  {:.1} µs/job, {:.0} B log/job  slices {}",
            grouped(rate),
            grouped(least),
            grouped(most),
            median(&ratios),
            median_of(outcomes, |o| o.cpu),
            median_of(outcomes, |o| o.log),
            slices.join(" ")
        );
        print!("  claims {claims}, short {short}");
        print!(
            ", locked in vain per job {:.2}",
            in_vain as f64 / taken as f64
        );
        println!(
            ", searches {searches} ({:.1} ms each)",
            searching * 1e3 / (searches.max(1) as f64)
        );
    }
}

fn median_of(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    median(&outcomes.iter().map(of).collect::<Vec<_>>())
}
