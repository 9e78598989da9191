//! Medians over the rounds, the tables, the line for programs, and which target was missed.

use anyhow::Result;
use queue_benches::figures::{grouped, median, rounded};
use serde_json::{Map, Value, json};

use crate::drain::{Case, Drained, SLICES, Side};
use crate::enqueue::Enqueued;

/// The least part of the bare loop's rate, while no snapshot is held.
const RATIO_MIN: f64 = 0.5;

/// All rounds.
#[derive(Default)]
pub(crate) struct Report {
    drains: Vec<(Case, Vec<Drained>)>,
    enqueues: Vec<Vec<Enqueued>>,
}

impl Report {
    pub(crate) fn drained(&mut self, case: Case, drained: Drained) {
        match self.drains.iter_mut().find(|(known, _)| *known == case) {
            Some((_, rounds)) => rounds.push(drained),
            None => self.drains.push((case, vec![drained])),
        }
    }

    pub(crate) fn enqueued(&mut self, enqueued: Enqueued) {
        let name = enqueued.name();
        let known = self
            .enqueues
            .iter_mut()
            .find(|rounds| rounds[0].name() == name);
        match known {
            Some(rounds) => rounds.push(enqueued),
            None => self.enqueues.push(vec![enqueued]),
        }
    }

    /// Says where the store is slower than it may be.
    pub(crate) fn missed(&self) -> Vec<String> {
        let mut missed = Vec::new();
        for (case, rounds) in &self.drains {
            let ratio = median_of(rounds, Drained::ratio);
            if !case.is_held && ratio < RATIO_MIN {
                missed.push(format!(
                    "{}: {ratio:.2} of the bare loop's rate, not {RATIO_MIN}",
                    case.name()
                ));
            }
        }
        missed
    }

    /// Prints the tables for people and, last, the line for programs.
    pub(crate) fn print(&self, rounds: usize) -> Result<()> {
        for (case, rounds) in &self.drains {
            println!("\n{}", case.name());
            side("bare loop", rounds, |drained| &drained.raw);
            side("store", rounds, |drained| &drained.store);
            let ratio = spread(rounds, Drained::ratio, |ratio| format!("{ratio:.2}"));
            println!("  {:<10} {ratio}", "ratio");
        }
        if !self.enqueues.is_empty() {
            println!("\nenqueueing, jobs/s");
        }
        for rounds in &self.enqueues {
            println!("  {}", rounds[0].name());
            let show = |what: &str, rate: fn(&Enqueued) -> f64| {
                let rates = spread(rounds, rate, grouped);
                let ratio = spread(rounds, |e| rate(e) / e.raw, |ratio| format!("{ratio:.2}"));
                println!("    {what:<32} {rates:<30} ratio {ratio}");
            };
            show("raw, a connection each", |e| e.raw);
            show("store", |e| e.store);
            show("store with a connection each", |e| e.wide);
        }
        println!("\n{}", self.line(rounds));
        Ok(())
    }

    fn line(&self, rounds: usize) -> Value {
        let mut line = Map::new();
        line.insert("rounds".to_owned(), json!(rounds));
        let mut put = |name: String, number: f64, decimals| {
            line.insert(name, json!(rounded(number, decimals)));
        };
        for (case, rounds) in &self.drains {
            let held = if case.is_held { "_held" } else { "" };
            let name = format!("drain_{}x{}{held}", case.batch, case.loops);
            put(
                format!("{name}_ratio"),
                median_of(rounds, Drained::ratio),
                3,
            );
            put(
                format!("{name}_raw_per_s"),
                median_of(rounds, |d| d.raw.per_second),
                0,
            );
            put(
                format!("{name}_per_s"),
                median_of(rounds, |d| d.store.per_second),
                0,
            );
        }
        for rounds in &self.enqueues {
            let name = format!("enqueue_{}x{}", rounds[0].producers, rounds[0].jobs);
            put(
                format!("{name}_ratio"),
                median_of(rounds, |e| e.store / e.raw),
                3,
            );
            put(
                format!("{name}_wide_ratio"),
                median_of(rounds, |e| e.wide / e.raw),
                3,
            );
            put(format!("{name}_raw_per_s"), median_of(rounds, |e| e.raw), 0);
            put(format!("{name}_per_s"), median_of(rounds, |e| e.store), 0);
        }
        line.insert("targets_met".to_owned(), json!(self.missed().is_empty()));
        Value::Object(line)
    }
}

fn side(name: &str, rounds: &[Drained], of: fn(&Drained) -> &Side) {
    let rates = spread(rounds, |d| of(d).per_second, grouped);
    let slices: Vec<String> = (0..SLICES)
        .map(|n| grouped(median_of(rounds, |d| of(d).slices[n])))
        .collect();
    let short: usize = rounds.iter().map(|d| of(d).short).sum();
    println!(
        "  {name:<10} {rates:<28} jobs/s, by fifths {}; µs per job: server {:.1}, client {:.1}; \
         short claims {short}",
        slices.join(" "),
        median_of(rounds, |d| of(d).server_us),
        median_of(rounds, |d| of(d).own_us),
    );
}

/// The median and the range.
fn spread<T>(rounds: &[T], of: impl Fn(&T) -> f64, show: impl Fn(f64) -> String) -> String {
    let values: Vec<f64> = rounds.iter().map(of).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    format!(
        "{} [{} – {}]",
        show(median(&values)),
        show(least),
        show(most)
    )
}

fn median_of<T>(rounds: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median(&rounds.iter().map(of).collect::<Vec<_>>())
}
