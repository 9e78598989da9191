//! The servers of one run: started before it, stopped when it is over.
//!
//! A server that the caller names in the environment is used instead and left running. A store
//! whose server cannot be had is skipped and says so; in continuous integration, where `CI` is
//! set, that is an error.

use std::env;

use anyhow::{Context, Result};
use xtask::servers::install;

use crate::stores::{STORES, Server, Serving, Skipped, Store};

/// Dropping it stops the servers that it started.
pub(crate) struct Servers(Vec<Served>);

struct Served {
    store: &'static str,
    variable: &'static str,
    by: By,
}

enum By {
    /// The caller's own server, at this URL.
    Caller(String),
    Us(Box<dyn Serving>),
    /// Nobody, for this reason.
    Nobody(String),
}

impl Servers {
    /// Starts a server for each wanted store that needs one, and prints a line about each.
    pub(crate) fn start(wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut all = Vec::new();
        for Store { name, server } in STORES {
            if let Some(server) = server.filter(|_| wanted(name)) {
                let by = served(name, &server, variable(server.variable), in_ci())?;
                println!("{name}: {}", by.describe());
                all.push(Served {
                    store: name,
                    variable: server.variable,
                    by,
                });
            }
        }
        Ok(Self(all))
    }

    /// The environment of the tests: variable and URL of each server that there is.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let served = self.0.iter();
        served
            .filter_map(|served| Some((served.variable, served.by.url()?)))
            .collect()
    }

    /// The URL of a store's server, if there is one.
    pub(crate) fn url(&self, store: &str) -> Option<String> {
        let served = self.0.iter().find(|served| served.store == store);
        served.and_then(|served| served.by.url())
    }

    /// The stores that are left out.
    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let served = self.0.iter();
        served
            .filter_map(|Served { store, by, .. }| match by {
                By::Nobody(reason) => Some(Skipped {
                    store,
                    reason: reason.clone(),
                }),
                By::Caller(_) | By::Us(_) => None,
            })
            .collect()
    }
}

impl By {
    fn url(&self) -> Option<String> {
        match self {
            Self::Caller(url) => Some(url.clone()),
            Self::Us(server) => Some(server.url()),
            Self::Nobody(_) => None,
        }
    }

    /// Without the URL of a server that is not ours: it may hold a password.
    fn describe(&self) -> String {
        match self {
            Self::Caller(_) => "the caller's server".to_owned(),
            Self::Us(server) => format!("a throw-away server, {}", server.url()),
            Self::Nobody(reason) => format!("skipped, {reason}"),
        }
    }
}

fn served(store: &str, server: &Server, given: Option<String>, in_ci: bool) -> Result<By> {
    if let Some(url) = given {
        return Ok(By::Caller(url));
    }
    match (server.start)() {
        Ok(started) => Ok(By::Us(started)),
        Err(error) if in_ci => {
            Err(error).with_context(|| format!("{store}: no server, and CI is set"))
        }
        Err(error) => Ok(By::Nobody(format!("{error:#}"))),
    }
}

/// Says which servers there are; installs a missing one where that is possible.
pub(crate) fn tell() -> Result<()> {
    let servers = [
        (
            "postgres",
            install::postgres(None).and_then(|found| found.describe()),
        ),
        (
            "pgbouncer",
            install::pgbouncer().map(|found| found.display().to_string()),
        ),
    ];
    for (name, found) in servers {
        match found {
            Ok(found) => println!("{name}: {found}"),
            Err(error) if in_ci() => {
                return Err(error).with_context(|| format!("{name}: none, and CI is set"));
            }
            Err(error) => println!("{name}: skipped, {error:#}"),
        }
    }
    Ok(())
}

/// What an environment variable says; an empty one says nothing.
fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn in_ci() -> bool {
    variable("CI").is_some()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    struct Fake;

    impl Serving for Fake {
        fn url(&self) -> String {
            "fake://started".to_owned()
        }
    }

    fn found(
        start: fn() -> Result<Box<dyn Serving>>,
        given: Option<&str>,
        in_ci: bool,
    ) -> Result<(Option<String>, String)> {
        let server = Server {
            variable: "FAKE_URL",
            start,
        };
        let by = served("fake", &server, given.map(str::to_owned), in_ci)?;
        Ok((by.url(), by.describe()))
    }

    #[test]
    fn a_missing_server_skips_its_store_and_in_ci_is_an_error() -> Result<()> {
        let missing = || bail!("install it");
        assert_eq!(
            found(missing, None, false)?,
            (None, "skipped, install it".to_owned())
        );
        let error = found(missing, None, true).expect_err("CI is set");
        assert_eq!(
            format!("{error:#}"),
            "fake: no server, and CI is set: install it"
        );
        Ok(())
    }

    #[test]
    fn a_server_that_the_caller_names_is_used_and_its_password_is_not_shown() -> Result<()> {
        let start: fn() -> Result<Box<dyn Serving>> = || Ok(Box::new(Fake));
        let given = "fake://me:secret@host";
        assert_eq!(
            found(start, Some(given), true)?,
            (Some(given.to_owned()), "the caller's server".to_owned())
        );
        let (url, _) = found(start, None, true)?;
        assert_eq!(url.as_deref(), Some("fake://started"));
        Ok(())
    }
}
