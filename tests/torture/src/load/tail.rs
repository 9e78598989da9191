//! Reads what producers, and handlers that enqueue, write down while they do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::Result;
use queue_runtime::JobId;

use crate::ledger::{self, Entry};

/// How far the ledgers of producers were read, and what they hold.
pub(super) struct Tail {
    folder: PathBuf,
    read: BTreeMap<PathBuf, u64>,
    told: BTreeSet<JobId>,
    asked: BTreeSet<JobId>,
}

impl Tail {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            read: BTreeMap::new(),
            told: BTreeSet::new(),
            asked: BTreeSet::new(),
        }
    }

    /// Reads on; returns how many jobs producers were told of, and how many they asked for.
    pub(super) fn read(&mut self) -> Result<(u64, u64)> {
        for file in std::fs::read_dir(&self.folder)? {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.ends_with(".ledger") {
                self.read_on(&path)?;
            }
        }
        Ok((self.told.len() as u64, self.asked.len() as u64))
    }

    fn read_on(&mut self, path: &Path) -> Result<()> {
        let from = self.read.entry(path.to_owned()).or_default();
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(*from))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        *from += text.rfind('\n').map_or(0, |end| end as u64 + 1);
        for entry in ledger::parse(&text) {
            match entry.map_err(anyhow::Error::msg)? {
                Entry::Intent(_, _, job) => drop(self.asked.insert(job)),
                Entry::Accepted(_, job, _) => drop(self.told.insert(job)),
                _ => {}
            }
        }
        Ok(())
    }
}
