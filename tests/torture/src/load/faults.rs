//! Which faults a load meets, and when: a function of its seed and of how far it has come.

/// A fault of a process in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A worker is killed.
    Kill(usize),
    /// A worker is asked to stop.
    Stop(usize),
    /// A worker is frozen for a while.
    Freeze(usize),
    /// A producer is killed.
    KillProducer(usize),
}

/// The faults that are still to come.
pub(super) struct Faults {
    dice: fastrand::Rng,
    /// How many jobs must be final before each, the last one first.
    moments: Vec<u64>,
}

impl Faults {
    /// Spreads faults over a load at exponential distances, the last one well before its end.
    pub(super) fn new(jobs: u64, faults: u64, seed: u64) -> Self {
        let mut dice = fastrand::Rng::with_seed(seed);
        let gaps: Vec<f64> = (0..=faults).map(|_| -(1.0 - dice.f64()).ln()).collect();
        let scale = 0.9 * jobs as f64 / gaps.iter().sum::<f64>();
        let mut at = 0.0;
        let moments = gaps.iter().take(faults as usize).map(|gap| {
            at += gap * scale;
            at as u64
        });
        let mut moments: Vec<u64> = moments.collect();
        moments.reverse();
        Self { dice, moments }
    }

    /// The next fault, if so many jobs are final that it is due.
    pub(super) fn due(&mut self, ended: u64, workers: usize, producers: usize) -> Option<Fault> {
        self.moments.pop_if(|moment| *moment <= ended)?;
        let place = self.dice.usize(0..workers);
        Some(match self.dice.u8(0..100) {
            0..60 => Fault::Kill(place),
            60..70 => Fault::KillProducer(place % producers),
            70..90 => Fault::Stop(place),
            _ => Fault::Freeze(place),
        })
    }

    pub(super) fn are_over(&self) -> bool {
        self.moments.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(jobs: u64, faults: u64, seed: u64) -> Vec<(u64, Fault)> {
        let mut to_come = Faults::new(jobs, faults, seed);
        let at = |ended| Some((ended, to_come.due(ended, 4, 2)?));
        (0..jobs).filter_map(at).collect()
    }

    #[test]
    fn a_seed_gives_the_same_faults_again_and_all_before_the_end() {
        let faults = all(20_000, 10, 7);
        assert_eq!(faults, all(20_000, 10, 7));
        assert_ne!(faults, all(20_000, 10, 8));
        assert_eq!(faults.len(), 10);
        assert!(
            faults.iter().all(|(ended, _)| *ended < 18_001),
            "{faults:?}"
        );
    }

    #[test]
    fn seventy_of_a_hundred_are_kills_twenty_stops_and_ten_freezes() {
        let faults = all(1_000_000, 5_000, 1);
        let share = |of: fn(&Fault) -> bool| {
            let count = faults.iter().filter(|(_, fault)| of(fault)).count();
            (count as f64 / 50.0).round()
        };
        let kills = share(|fault| matches!(fault, Fault::Kill(_) | Fault::KillProducer(_)));
        let stops = share(|fault| matches!(fault, Fault::Stop(_)));
        assert!((68.0..=72.0).contains(&kills), "{kills}");
        assert!((18.0..=22.0).contains(&stops), "{stops}");
    }
}
