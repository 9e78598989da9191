//! The crates that are compiled: the same functions, as jobs or as they are.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

/// Jobs per module.
const PER_MODULE: usize = 50;

/// What stands above the functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Nothing; each is called from a list, as a hand-written worker would.
    Plain,
    /// `#[job]`.
    Jobs,
}

impl Variant {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Jobs => "jobs",
        }
    }
}

/// A crate on the disk.
pub(crate) struct Subject {
    folder: PathBuf,
    root: PathBuf,
    variant: Variant,
    edited: Cell<bool>,
}

impl Subject {
    /// Writes a crate into a folder of its own. All crates of `root` share what they depend on.
    pub(crate) fn write(root: &Path, jobs: usize, variant: Variant) -> Result<Self> {
        let subject = Self {
            folder: root.join(format!("{}_{jobs}", variant.name())),
            root: root.to_owned(),
            variant,
            edited: false.into(),
        };
        fs::create_dir_all(subject.folder.join("src"))?;
        let checkout = checkout()?;
        // The versions that the checkout is tested with.
        fs::copy(
            checkout.join("Cargo.lock"),
            subject.folder.join("Cargo.lock"),
        )?;
        subject.put("Cargo.toml", &manifest(&checkout, variant, jobs))?;
        let modules = jobs.div_ceil(PER_MODULE);
        let mut root = String::from(ROOT);
        for module in 0..modules {
            writeln!(root, "pub mod m{module};")?;
            let first = module * PER_MODULE;
            let numbers = first..jobs.min(first + PER_MODULE);
            subject.put(&format!("src/m{module}.rs"), &subject.module(numbers))?;
        }
        subject.put("src/lib.rs", &root)?;
        Ok(subject)
    }

    /// A cargo call on this crate, which takes nothing from the network.
    pub(crate) fn cargo(&self, arguments: &[&str], incremental: bool) -> Command {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        // A folder of its own for each, or what both depend on would be built again at every change.
        let (target, flag) = match incremental {
            true => ("incremental", "1"),
            false => ("whole", "0"),
        };
        let mut command = Command::new(cargo);
        command
            .args(arguments)
            .args(["--offline", "--quiet"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", self.root.join(target))
            .env("CARGO_INCREMENTAL", flag)
            .env_remove("CARGO_MANIFEST_DIR");
        command
    }

    /// Has the whole crate compiled anew.
    pub(crate) fn touch(&self) -> Result<()> {
        let path = self.folder.join("src/lib.rs");
        let text = fs::read_to_string(&path)?;
        Ok(fs::write(path, text)?)
    }

    /// Changes the body of the first job.
    pub(crate) fn edit_a_body(&self) -> Result<()> {
        let text = fs::read_to_string(self.folder.join("src/m0.rs"))?;
        self.edited.set(!self.edited.get());
        let (from, to) = match self.edited.get() {
            true => (BODY, EDITED),
            false => (EDITED, BODY),
        };
        self.put("src/m0.rs", &text.replacen(from, to, 1))
    }

    fn module(&self, numbers: Range<usize>) -> String {
        let mut text = String::from(HEAD);
        let mut list = String::new();
        for number in numbers {
            let attribute = match self.variant {
                Variant::Plain => "",
                Variant::Jobs => ATTRIBUTE,
            };
            let function = FUNCTION.replace("BODY", BODY);
            let _ = write!(
                text,
                "{attribute}{}",
                function.replace("NUMBER", &number.to_string())
            );
            let _ = writeln!(
                list,
                "        Box::pin(send_{number}(ctx.clone(), mailer.clone(), 7, \"a@b.example\", None)),"
            );
        }
        if self.variant == Variant::Plain {
            text.push_str(&LIST.replace("CALLS", &list));
        }
        text
    }

    fn put(&self, path: &str, text: &str) -> Result<()> {
        fs::write(self.folder.join(path), text).with_context(|| format!("write {path}"))
    }
}

fn checkout() -> Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR");
    let here = here.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let root = Path::new(&here).join("..");
    root.canonicalize()
        .context("the checkout that this program was built from")
}

fn manifest(checkout: &Path, variant: Variant, jobs: usize) -> String {
    format!(
        "[package]\nname = \"{}-{jobs}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nqueue-runtime = {{ path = {:?}, default-features = false, features = [\"macros\"] }}\n\n\
         [workspace]\n",
        variant.name(),
        checkout.join("queue-runtime")
    )
}

const ROOT: &str = "\
//! Jobs of three payload and two injected arguments.

pub struct Mailer;

impl Mailer {
    pub async fn send(&self, email: &str, attempt: u32) -> std::io::Result<()> {
        match attempt {
            0 => Err(std::io::Error::other(email.to_owned())),
            _ => Ok(()),
        }
    }
}

";

const HEAD: &str = "\
use queue_runtime::{Data, JobContext, JobError};

use crate::Mailer;

";

const ATTRIBUTE: &str = "\
#[queue_runtime::job(queue = \"mail\", retries = 5, timeout = \"60s\", dedupe = \"user_id\")]
";

const FUNCTION: &str = "\
pub async fn send_NUMBER(
    ctx: JobContext,
    mailer: Data<Mailer>,
    user_id: u64,
    email: &str,
    locale: Option<String>,
) -> Result<(), JobError> {
    BODY
    if locale.is_none() && user_id == NUMBER {
        return Err(JobError::permanent(\"no such user\"));
    }
    Ok(())
}

";

const BODY: &str = "mailer.send(email, ctx.attempt()).await?;";
const EDITED: &str = "mailer.send(email, ctx.attempt() + 1).await?;";

const LIST: &str = "\
type Call<'a> = std::pin::Pin<Box<dyn Future<Output = Result<(), JobError>> + Send + 'a>>;

pub fn all<'a>(ctx: &JobContext, mailer: &Data<Mailer>) -> Vec<Call<'a>> {
    vec![
CALLS    ]
}
";
