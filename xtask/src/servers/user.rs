//! The user that a server runs as: servers refuse to run as root, so root steps down for them.
//!
//! Needs neither `sudo` nor `setpriv`: a child process sets its own user before it becomes the
//! server. Elsewhere than on Unix there is no such user, and no shell that would start a server.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// Accounts that a server may run as, in the order of preference.
const ACCOUNTS: [&str; 2] = ["postgres", "nobody"];

/// An unprivileged user, by number.
#[derive(Debug)]
pub(crate) struct User {
    name: &'static str,
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has numbered users"))]
    user: u32,
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has numbered users"))]
    group: u32,
}

impl User {
    /// The user to step down to; `None` when we are unprivileged ourselves.
    pub(crate) fn below_root() -> Result<Option<Self>> {
        if !is_root() {
            return Ok(None);
        }
        for name in ACCOUNTS {
            if let (Ok(user), Ok(group)) = (id(&["-u", name]), id(&["-g", name])) {
                return Ok(Some(Self { name, user, group }));
            }
        }
        bail!("servers refuse to run as root, and there is neither a user `postgres` nor `nobody`")
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Makes `command` run as this user, without any other groups.
    pub(crate) fn run(&self, command: &mut Command) {
        #[cfg(unix)]
        {
            use std::os::unix::process::CommandExt;
            command.gid(self.group).uid(self.user);
        }
        #[cfg(not(unix))]
        let _ = command;
    }

    /// Hands `path` to this user.
    pub(crate) fn own(&self, path: &Path) -> Result<()> {
        #[cfg(unix)]
        std::os::unix::fs::chown(path, Some(self.user), Some(self.group))
            .with_context(|| format!("hand {} to {}", path.display(), self.name))?;
        #[cfg(not(unix))]
        let _ = path;
        Ok(())
    }
}

/// Whether this process may do everything.
pub(crate) fn is_root() -> bool {
    id(&["-u"]).is_ok_and(|user| user == 0)
}

/// Makes `command` the first of a process group of its own.
pub(crate) fn own_group(command: &mut Command) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    #[cfg(not(unix))]
    let _ = command;
}

fn id(arguments: &[&str]) -> Result<u32> {
    let asked = Command::new("id")
        .args(arguments)
        .output()
        .context("start id")?;
    ensure!(asked.status.success(), "id {arguments:?} failed");
    Ok(String::from_utf8(asked.stdout)?.trim().parse()?)
}
