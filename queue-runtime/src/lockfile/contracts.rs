//! The contracts of a program's jobs, from their definitions.

use std::time::Duration;

use super::{LockfileError, PACKAGE, Report, parse, write};
use crate::handler::{Field, JobDef};
use crate::job::shape::{Member, Shape, Struct};
use crate::job::{Backoff, Contract, DedupeUntil, OnDuplicate};
use crate::pipeline::declare::Registry;
use crate::rules::evolution;

/// Returns the contract of every job, sorted by name. Runs the `Deserialize` of every argument.
pub fn contracts(registry: &Registry) -> Vec<Contract> {
    registry.defs().map(contract).collect()
}

/// Returns the text of the file for these jobs.
pub fn render(registry: &Registry) -> String {
    write(&contracts(registry))
}

/// Compares these jobs with the text of a file.
///
/// # Errors
/// If the text is damaged or of a newer form; the error names the line.
pub fn check(registry: &Registry, text: &str) -> Result<Report, LockfileError> {
    let old = parse(text)?;
    let new = contracts(registry);
    Ok(Report {
        changes: evolution::compare(&old, &new),
        current: old == new,
        unseen: new.iter().flat_map(unseen).collect(),
    })
}

fn contract(def: &JobDef) -> Contract {
    let mut aliases: Vec<String> = def.aliases.iter().map(|&alias| alias.into()).collect();
    aliases.sort();
    Contract {
        name: def.name.into(),
        aliases,
        schema: def.schema,
        upcast: has_upcast(def),
        settings: settings(def),
        payload: payload(def.fields),
    }
}

/// Whether the job rewrites payloads of older schemas.
fn has_upcast(def: &JobDef) -> bool {
    def.upcast.is_some()
}

fn payload(fields: &[Field]) -> Struct {
    let mut fields: Vec<Member> = fields.iter().map(member).collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    Struct {
        name: None,
        closed: false,
        fields,
    }
}

fn member(field: &Field) -> Member {
    let mut aliases: Vec<String> = field.aliases.iter().map(|&alias| alias.into()).collect();
    aliases.sort();
    let traced = (field.shape)();
    let optional = traced.as_ref().is_some_and(|traced| traced.optional);
    Member {
        name: field.name.into(),
        aliases,
        required: !(field.default || optional),
        // The feature that gates this file is the one that makes a shape known.
        shape: traced.map_or(Shape::Anything, |traced| traced.shape),
    }
}

fn settings(def: &JobDef) -> Vec<(String, String)> {
    let mut settings = vec![
        (PACKAGE, def.source.package.to_owned()),
        ("queue", def.queue.to_owned()),
        ("priority", def.priority.to_string()),
        ("retries", def.retries.to_string()),
        ("backoff", backoff(&def.backoff)),
        ("timeout", def.timeout.map_or("none".to_owned(), span)),
    ];
    if let Some(deadline) = def.deadline {
        settings.push(("deadline", span(deadline)));
    }
    if let Some(key) = def.keys.dedupe {
        settings.push(("dedupe", key.to_owned()));
        settings.push(("dedupe_until", until(&def.dedupe_until)));
        settings.push(("on_duplicate", on_duplicate(def.on_duplicate).to_owned()));
    }
    if let Some(key) = def.keys.idempotency {
        settings.push(("idempotency", key.to_owned()));
        settings.push(("idempotency_for", span(def.idempotency_for)));
    }
    if let Some(key) = def.keys.cache {
        settings.push(("cache", key.to_owned()));
    }
    settings.sort_unstable();
    settings
        .into_iter()
        .map(|(name, text)| (name.to_owned(), text))
        .collect()
}

fn backoff(backoff: &Backoff) -> String {
    match *backoff {
        Backoff::Fixed {
            delay,
            jitter_percent,
        } => format!("fixed {} +-{jitter_percent}%", span(delay)),
        Backoff::Exponential {
            base,
            max,
            jitter_percent,
        } => format!(
            "exponential {} to {} +-{jitter_percent}%",
            span(base),
            span(max)
        ),
    }
}

fn until(until: &DedupeUntil) -> String {
    match until {
        DedupeUntil::Finished => "finished".into(),
        DedupeUntil::Started => "started".into(),
        DedupeUntil::Window(window) => span(*window),
    }
}

fn on_duplicate(mode: OnDuplicate) -> &'static str {
    match mode {
        OnDuplicate::Keep => "keep",
        OnDuplicate::Replace => "replace",
        OnDuplicate::Rerun => "rerun",
    }
}

/// A span in the largest unit that divides it.
fn span(span: Duration) -> String {
    let millis = span.as_millis();
    let units = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let fits = |(size, _): &&(u128, &str)| millis > 0 && millis.is_multiple_of(*size);
    match units.iter().find(fits) {
        Some((size, unit)) => format!("{}{unit}", millis / size),
        None => format!("{millis}ms"),
    }
}

/// The places that cannot be looked into.
fn unseen(job: &Contract) -> Vec<String> {
    let mut found = Vec::new();
    for field in &job.payload.fields {
        let path = format!("$.{}", field.name);
        look(&field.shape, &path, &mut |path, about| {
            found.push(format!("{} {path} ({about})", job.name));
        });
    }
    found
}

fn look(shape: &Shape, path: &str, found: &mut impl FnMut(&str, &str)) {
    if let Shape::Opaque(opaque) = shape {
        found(path, &opaque.about);
    }
    for (step, inner) in shape.inside() {
        look(inner, &format!("{path}{step}"), found);
    }
}
