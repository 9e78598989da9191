//! A folder on a real disk, and what a durable write costs there at the moment.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use crate::figures::median;

/// File systems that only pretend to write to a disk.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Writes of one probe: enough for a median, few enough not to use up a disk's burst budget.
const PROBES: usize = 25;

/// A temporary folder that is not in memory; removed when this is dropped.
#[derive(Debug)]
pub struct Disk {
    folder: TempDir,
    file_system: String,
}

impl Disk {
    /// Makes a folder: in `QUEUE_BENCH_DIR` if that is set, else where temporary files go, else
    /// beside the build, whichever is the first on a disk.
    ///
    /// # Errors
    /// If none of these is on a disk; a benchmark of durable commits would be of no use there.
    pub fn find() -> Result<Self> {
        let asked = std::env::var_os("QUEUE_BENCH_DIR").map(PathBuf::from);
        let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
        let places = match asked {
            Some(asked) => vec![asked],
            None => vec![std::env::temp_dir(), build],
        };
        for place in &places {
            let file_system = file_system(place);
            if !IN_MEMORY.contains(&file_system.as_str()) {
                let folder = tempfile::tempdir_in(place)
                    .with_context(|| format!("make a folder in {}", place.display()))?;
                return Ok(Self {
                    folder,
                    file_system,
                });
            }
        }
        bail!("in memory, not on a disk: {places:?}. Set QUEUE_BENCH_DIR to a folder on a disk")
    }

    /// The folder and what it is on, for the report.
    pub fn describe(&self) -> String {
        format!("{} ({})", self.folder.path().display(), self.file_system)
    }

    /// Makes an empty folder inside, so that no measurement finds the file of another.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn fresh(&self) -> Result<TempDir> {
        Ok(tempfile::tempdir_in(self.folder.path())?)
    }

    /// Measures how long it takes to append a page and have it on the disk: the median of a few.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn sync_span(&self) -> Result<Duration> {
        let mut file = File::create(self.folder.path().join("probe"))?;
        let mut spans = Vec::with_capacity(PROBES);
        for _ in 0..PROBES {
            let begun = Instant::now();
            file.write_all(&[0; 4096])?;
            file.sync_data()?;
            spans.push(begun.elapsed().as_secs_f64());
        }
        Ok(Duration::from_secs_f64(median(&spans)))
    }
}

/// The type of the file system that a folder is on, as the kernel names it; `unknown` elsewhere.
fn file_system(folder: &Path) -> String {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounted = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        Some((Path::new(words.next()?), words.next()?))
    });
    // The last of equally long mount points lies on top of the others.
    mounted
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map_or("unknown", |(_, kind)| kind)
        .to_owned()
}
