//! Where the programs of a server are on this machine.
//!
//! Looks and never installs, so that a test can call it; [`super::install`] is for the chores.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Names the folder of Postgres' programs, and is believed before any other place.
pub const PG_BIN: &str = "PG_BIN";

/// Where Debian's packages put one folder per major version.
const PACKAGED: &str = "/usr/lib/postgresql";

/// Where Debian's packages put servers; not on everybody's `PATH`.
const SYSTEM_PROGRAMS: &str = "/usr/sbin";

/// The programs that a Postgres server is made with, of one version.
///
/// `pg_ctl` and `pg_isready` are not needed: a server is ended by its process id and asked by the
/// protocol, and some distributions of the binaries lack them.
#[derive(Clone, Debug, PartialEq)]
pub struct PostgresPrograms {
    /// Makes a data folder.
    pub initdb: PathBuf,
    /// The server.
    pub postgres: PathBuf,
}

impl PostgresPrograms {
    fn inside(folder: &Path) -> Option<Self> {
        let found = Self {
            initdb: folder.join("initdb"),
            postgres: folder.join("postgres"),
        };
        (found.initdb.is_file() && found.postgres.is_file()).then_some(found)
    }

    /// What the server says of its version, and where it is.
    pub fn describe(&self) -> Result<String> {
        let shown = self.postgres.display();
        let asked = Command::new(&self.postgres).arg("--version").output();
        let asked = asked.with_context(|| format!("start {shown}"))?;
        ensure!(asked.status.success(), "{shown} --version failed");
        let version = String::from_utf8_lossy(&asked.stdout);
        Ok(format!("{}, {shown}", version.trim()))
    }
}

/// Finds Postgres: in `bin`, else where `PG_BIN` says, else the newest packaged, else on `PATH`.
///
/// A folder that somebody named is the only one that is looked into.
pub fn postgres(bin: Option<&Path>) -> Result<PostgresPrograms> {
    let named = env::var_os(PG_BIN).filter(|named| !named.is_empty());
    let named = named.map(PathBuf::from);
    postgres_among(&Places {
        named: bin.or(named.as_deref()),
        packaged: Path::new(PACKAGED),
        path: path(),
    })
}

/// Finds PgBouncer: on `PATH`, else where Debian's package puts it.
pub fn pgbouncer() -> Result<PathBuf> {
    let folders = path().into_iter().chain([SYSTEM_PROGRAMS.into()]);
    let mut programs = folders.map(|folder| folder.join("pgbouncer"));
    match programs.find(|program| program.is_file()) {
        Some(program) => Ok(program),
        None => bail!("pgbouncer is not on PATH: install it (Debian: apt-get install pgbouncer)"),
    }
}

struct Places<'p> {
    named: Option<&'p Path>,
    packaged: &'p Path,
    path: Vec<PathBuf>,
}

fn postgres_among(places: &Places<'_>) -> Result<PostgresPrograms> {
    if let Some(folder) = places.named {
        return PostgresPrograms::inside(folder).with_context(|| {
            let folder = folder.display();
            format!("no initdb and postgres in {folder}, which {PG_BIN} or --bin names")
        });
    }
    let packaged = packaged(places.packaged);
    let mut folders = packaged.iter().chain(&places.path);
    folders
        .find_map(|folder| PostgresPrograms::inside(folder))
        .with_context(|| {
            format!(
                "no Postgres server: install one (Debian: apt-get install postgresql) or \
                 name the folder of initdb and postgres in {PG_BIN}"
            )
        })
}

/// The folders of all packaged versions, newest first.
fn packaged(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, folder)| folder).collect()
}

fn path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up machine with these programs, by their path in it.
    fn machine(programs: &[&str]) -> Result<tempfile::TempDir> {
        let root = tempfile::tempdir()?;
        for program in programs {
            let file = root.path().join(program);
            fs::create_dir_all(file.parent().context("a folder")?)?;
            fs::write(file, "")?;
        }
        Ok(root)
    }

    fn found(root: &Path, named: Option<&str>) -> Result<PathBuf> {
        let named = named.map(|folder| root.join(folder));
        let programs = postgres_among(&Places {
            named: named.as_deref(),
            packaged: &root.join("packaged"),
            path: vec![root.join("path"), root.join("other")],
        })?;
        let folder = programs.postgres.parent().context("a folder")?;
        Ok(folder.strip_prefix(root)?.to_owned())
    }

    #[test]
    fn a_named_folder_comes_before_the_newest_package_and_that_before_the_path() -> Result<()> {
        let all = machine(&[
            "named/initdb",
            "named/postgres",
            "packaged/9/bin/initdb",
            "packaged/9/bin/postgres",
            "packaged/15/bin/initdb",
            "packaged/15/bin/postgres",
            "path/initdb",
            "path/postgres",
        ])?;
        assert_eq!(found(all.path(), Some("named"))?, Path::new("named"));
        assert_eq!(found(all.path(), None)?, Path::new("packaged/15/bin"));

        let path_only = machine(&["other/initdb", "other/postgres"])?;
        assert_eq!(found(path_only.path(), None)?, Path::new("other"));
        Ok(())
    }

    #[test]
    fn a_folder_with_half_of_the_programs_is_passed_over() -> Result<()> {
        let client_only = machine(&[
            "packaged/16/bin/initdb",
            "packaged/15/bin/initdb",
            "packaged/15/bin/postgres",
        ])?;
        assert_eq!(
            found(client_only.path(), None)?,
            Path::new("packaged/15/bin")
        );
        Ok(())
    }

    #[test]
    fn a_named_folder_without_a_server_is_an_error_even_if_another_has_one() -> Result<()> {
        let machine = machine(&["path/initdb", "path/postgres"])?;
        let refused = found(machine.path(), Some("named"))
            .expect_err("nothing is there")
            .to_string();
        assert!(
            refused.starts_with("no initdb and postgres in "),
            "{refused}"
        );
        assert!(refused.contains("named, which PG_BIN"), "{refused}");
        Ok(())
    }

    #[test]
    fn a_machine_without_a_server_is_told_in_one_line_what_to_install() -> Result<()> {
        let refused = found(machine(&[])?.path(), None)
            .expect_err("nothing is there")
            .to_string();
        assert_eq!(refused.lines().count(), 1, "{refused}");
        assert!(refused.contains("apt-get install postgresql"), "{refused}");
        assert!(refused.contains(PG_BIN), "{refused}");
        Ok(())
    }
}
