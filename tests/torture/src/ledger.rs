//! What processes write down while they work: one line for each thing that happened, which a kill
//! of the process cannot take back.
//!
//! Each process has a file of its own. A line is one write to a file that is open for appending, so
//! it is there as a whole or not at all; the system keeps it when the process dies. A last line
//! without its end belongs to a write that never returned, and is not read.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::str::FromStr;

use queue_runtime::{JobId, JobState};

use crate::jobs::Kind;

/// An attempt, as its handler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The job.
    pub job: JobId,
    /// The number of the attempt.
    pub attempt: u32,
    /// Its lease token.
    pub token: i64,
}

/// A line of a ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A producer is about to make this request, under this id.
    Intent(u64, Kind, JobId),
    /// It was answered: by this job, and whether that existed before.
    Accepted(u64, JobId, bool),
    /// It was refused: nothing may be stored.
    Refused(u64),
    /// It failed: nobody knows whether it is stored.
    Unknown(u64),
    /// A handler has started.
    Start(Run),
    /// It has taken its effect.
    Effect(Run),
    /// It is about to return.
    End(Run),
    /// The store has recorded that this attempt ended its job.
    Final(JobId, i64, JobState),
    /// The store has refused something about this attempt, whose lease is another's.
    Lost(JobId, i64),
    /// This attempt was taken from its worker.
    Rescued(JobId, i64),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = |f: &mut fmt::Formatter<'_>, word, run: &Run| {
            write!(f, "{word} {} {} {}", run.job, run.attempt, run.token)
        };
        match self {
            Self::Intent(n, kind, job) => write!(f, "intent {n} {} {job}", kind.name()),
            Self::Accepted(n, job, duplicate) => write!(f, "accepted {n} {job} {duplicate}"),
            Self::Refused(n) => write!(f, "refused {n}"),
            Self::Unknown(n) => write!(f, "unknown {n}"),
            Self::Start(of) => run(f, "start", of),
            Self::Effect(of) => run(f, "effect", of),
            Self::End(of) => run(f, "end", of),
            Self::Final(job, token, state) => write!(f, "final {job} {token} {state}"),
            Self::Lost(job, token) => write!(f, "lost {job} {token}"),
            Self::Rescued(job, token) => write!(f, "rescued {job} {token}"),
        }
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let words: Vec<&str> = line.split(' ').collect();
        let refuse = || format!("{line:?} is no line of a ledger");
        fn word<T: FromStr>(text: &str, line: &str) -> Result<T, String> {
            text.parse()
                .map_err(|_| format!("{line:?} is no line of a ledger: {text:?}"))
        }
        Ok(match words[..] {
            ["intent", n, kind, job] => Self::Intent(
                word(n, line)?,
                Kind::named(kind).ok_or_else(refuse)?,
                word(job, line)?,
            ),
            ["accepted", n, job, duplicate] => {
                Self::Accepted(word(n, line)?, word(job, line)?, word(duplicate, line)?)
            }
            ["refused", n] => Self::Refused(word(n, line)?),
            ["unknown", n] => Self::Unknown(word(n, line)?),
            ["final", job, token, state] => {
                Self::Final(word(job, line)?, word(token, line)?, word(state, line)?)
            }
            ["lost", job, token] => Self::Lost(word(job, line)?, word(token, line)?),
            ["rescued", job, token] => Self::Rescued(word(job, line)?, word(token, line)?),
            [verb, job, attempt, token] => {
                let run = Run {
                    job: word(job, line)?,
                    attempt: word(attempt, line)?,
                    token: word(token, line)?,
                };
                match verb {
                    "start" => Self::Start(run),
                    "effect" => Self::Effect(run),
                    "end" => Self::End(run),
                    _ => return Err(refuse()),
                }
            }
            _ => return Err(refuse()),
        })
    }
}

/// The ledger of this process.
#[derive(Debug)]
pub struct Ledger(File);

/// How the files of ledgers end.
const ENDING: &str = ".ledger";

impl Ledger {
    /// Opens the ledger of a boot: one start of one process.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn open(folder: &Path, boot: &str) -> std::io::Result<Self> {
        let path = folder.join(format!("{boot}{ENDING}"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self(file))
    }

    /// Appends a line by one write.
    ///
    /// # Errors
    /// If the disk takes no more.
    pub fn note(&self, entry: &Entry) -> std::io::Result<()> {
        (&self.0).write_all(format!("{entry}\n").as_bytes())
    }
}

/// Reads all ledgers of a folder: the boot that wrote each line, boot by boot, in order.
///
/// # Errors
/// If a file cannot be read, or a line is none.
pub fn read(folder: &Path) -> anyhow::Result<Vec<(String, Entry)>> {
    let mut entries = Vec::new();
    let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    files.sort_by_key(std::fs::DirEntry::file_name);
    for file in files {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(boot) = name.strip_suffix(ENDING) else {
            continue;
        };
        for entry in parse(&std::fs::read_to_string(file.path())?) {
            entries.push((boot.to_owned(), entry.map_err(anyhow::Error::msg)?));
        }
    }
    Ok(entries)
}

/// Reads the whole lines of a text.
pub fn parse(text: &str) -> impl Iterator<Item = Result<Entry, String>> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(str::parse)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(last: u32) -> JobId {
        format!("01890000-0000-7000-8000-{last:012}")
            .parse()
            .expect("an id")
    }

    #[test]
    fn every_entry_is_read_as_it_was_written() {
        let run = Run {
            job: id(1),
            attempt: 2,
            token: 3,
        };
        let written = [
            Entry::Intent(7, Kind::Booked, id(1)),
            Entry::Accepted(7, id(1), true),
            Entry::Refused(8),
            Entry::Unknown(9),
            Entry::Start(run),
            Entry::Effect(run),
            Entry::End(run),
            Entry::Final(id(1), 3, JobState::DeadLetter),
            Entry::Lost(id(1), 3),
            Entry::Rescued(id(1), 3),
        ];
        let text: String = written.iter().map(|entry| format!("{entry}\n")).collect();
        let read: Result<Vec<_>, _> = parse(&text).collect();
        assert_eq!(read.as_deref(), Ok(&written[..]));
    }

    #[test]
    fn a_line_that_was_cut_is_left_out_and_a_strange_one_is_refused() {
        let read: Vec<_> = parse("refused 1\nrefused 2").collect();
        assert_eq!(read, [Ok(Entry::Refused(1))]);
        let read: Vec<_> = parse("refuse 1\n").collect();
        assert_eq!(
            read,
            [Err("\"refuse 1\" is no line of a ledger".to_owned())]
        );
    }
}
