//! Reads the address of a database: what is ours in it, what every client knows, and what of it may
//! stand in a message.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use crate::error::OpenError;

/// Reads a URL; also gives the names and values of the parameters that are ours.
///
/// # Errors
/// [`OpenError::InvalidUrl`]; the message never holds the password.
pub(super) fn read(url: &str) -> Result<(PgConnectOptions, Vec<(String, String)>), OpenError> {
    let refuse = |rule: String| refused(url, rule);
    let Some((scheme, rest)) = url.split_once("://") else {
        let rule = "must start with postgres://. Write postgres://user@host/database";
        return Err(refuse(rule.to_owned()));
    };
    if !matches!(scheme, "postgres" | "postgresql") {
        let rule = format!("has the scheme {scheme:?}. Write postgres://user@host/database");
        return Err(refuse(rule));
    }
    let authority = rest.split(['/', '?']).next().unwrap_or("");
    let host = authority.rsplit('@').next().unwrap_or("");
    if host.is_empty() && !rest.contains("host=") {
        let rule = "names no host. Write postgres://user@host/database";
        return Err(refuse(rule.to_owned()));
    }
    if is_torn(rest) {
        let rule = format!("has an `@` where none may be. {ENCODE}");
        return Err(refuse(rule));
    }
    let (kept, ours) = parted(url);
    if let Some((written, meant)) = misspelt(url) {
        let rule = format!("has the parameter {written:?}; did you mean {meant:?}?");
        return Err(refuse(rule));
    }
    let connect = PgConnectOptions::from_str(&kept).map_err(|error| {
        // A password with one of these characters tears the address apart.
        refuse(format!(
            "is not a valid address ({}). {ENCODE}",
            without(&error.to_string(), url)
        ))
    })?;
    Ok((connect, ours))
}

/// Refuses a URL, of which the message shows what may be shown.
pub(super) fn refused(url: &str, rule: String) -> OpenError {
    OpenError::InvalidUrl {
        url: redacted(url),
        rule,
    }
}

/// The parameters of a URL that are ours.
const OURS: [&str; 4] = ["schema", "connections", "pooler", "notify"];

/// How to write what has a meaning in an address.
const ENCODE: &str = "Write `@ : / ? # %` in a user or password as %40 %3A %2F %3F %23 %25";

/// Says whether an `@` stands behind the host, or what looks like it: then a password with a `/`,
/// `?` or `#` has torn the address apart, and its end would be taken for a database's name.
fn is_torn(rest: &str) -> bool {
    let Some(end) = rest.find(['/', '?', '#']) else {
        return false;
    };
    let (path, query) = match rest[end..].split_once('?') {
        Some((path, query)) => (path, query),
        None => (&rest[end..], ""),
    };
    // The value of a parameter may have one.
    let names = query
        .split('&')
        .map(|parameter| parameter.split('=').next().unwrap_or(""));
    path.contains('@') || query.contains('#') || names.into_iter().any(|name| name.contains('@'))
}

/// Takes our parameters out of a URL.
fn parted(url: &str) -> (String, Vec<(String, String)>) {
    let Some((address, query)) = url.split_once('?') else {
        return (url.to_owned(), Vec::new());
    };
    let (mut kept, mut ours) = (Vec::new(), Vec::new());
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some((name, value)) if OURS.contains(&name) => {
                ours.push((name.to_owned(), value.to_owned()));
            }
            _ => kept.push(parameter),
        }
    }
    let kept = match kept.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", kept.join("&")),
    };
    (kept, ours)
}

/// Finds a parameter that is nearly one of ours, with the one that is meant: passed over, it would
/// leave the queue on a default that nobody asked for.
fn misspelt(url: &str) -> Option<(&str, &'static str)> {
    let (_, query) = url.split_once('?')?;
    query.split('&').find_map(|parameter| {
        let name = parameter.split('=').next().unwrap_or("");
        let nearly = |ours: &&str| *ours != name && is_near(name, ours);
        let meant = OURS.iter().copied().find(|ours| nearly(ours))?;
        Some((name, meant))
    })
}

/// Says whether one word becomes the other by one slip, upper and lower case aside: a letter too
/// many, too few, or another.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    one.len().max(other.len()) - end <= 1
}

/// Leaves the user and password of a URL out, and cuts what is left.
fn redacted(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let scheme = &url[..url.len() - rest.len()];
    let shown = match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}…@{host}"),
        None => url.to_owned(),
    };
    let shown = match shown.split_once('?') {
        Some((address, query)) if query.contains("password") => format!("{address}?…"),
        _ => shown,
    };
    crate::job::shorten(&shown)
}

/// A message without any part of the address that may be secret.
fn without(message: &str, url: &str) -> String {
    let secret = url
        .split_once("://")
        .and_then(|(_, rest)| rest.rsplit_once('@'))
        .map_or("", |(secret, _)| secret);
    match secret.is_empty() {
        true => message.to_owned(),
        false => message.replace(secret, "…"),
    }
}

#[cfg(test)]
mod tests {
    use crate::store::postgres::PostgresOptions;

    fn refused(url: &str) -> String {
        match PostgresOptions::new(url) {
            Ok(options) => panic!("{url} was taken as {options:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_address_that_cannot_be_one_says_which_part_is_wrong() {
        let check = |url: &str, words: &str| {
            let said = refused(url);
            assert!(said.contains(words), "{url}: {said}");
        };
        check("", "must start with postgres://");
        check("mysql://app@host/db", "scheme \"mysql\"");
        check("postgres://", "names no host");
        check("postgres:///db", "names no host");
        check("postgres://app@host/db?schema=a b", "letters, digits");
        check("postgres://app@host/db?schema=pg_x", "Postgres itself");
        check("postgres://app@host/db?connections=1", "must be 2 to");
        check("postgres://app@host/db?connections=many", "no number");
        check(
            "postgres://app@host/db?pooler=session",
            "pooler=transaction",
        );
        check("postgres://app@host/db?notify=maybe", "on or off");
        check(
            "postgres://app@host/db?shema=jobs",
            "did you mean \"schema\"",
        );
        check(
            "postgres://app@host/db?sslmode=disable&Schema=jobs",
            "\"schema\"",
        );
        check("postgres://app@host/db?connection=9", "\"connections\"");
        check("postgres://app@host/db?poller=transaction", "\"pooler\"");
        check("postgres://app:p#w@host:x/db", "%23");
        check("postgres://app:12/34@host/db", "%2F");
        check("postgres://app:12?34@host/db", "%3F");
        check("postgres://app:12#34@host/db", "%23");
        check("postgres://app:1/2?3@host/db", "%2F");
    }

    #[test]
    fn a_password_is_in_no_message_and_no_debug_output() {
        for url in [
            "postgres://app:hunter2@host/db?connections=1",
            "postgres://app:hunter2@host:port/db",
            "mysql://app:hunter2@host/db",
            "postgres://app:hun/ter2@host/db?pooler=x",
            "postgres://app:12/hunter2@host/db",
            "postgres://app:12?hunter2@host/db",
            "postgres://app:12#hunter2@host/db",
            "postgres://app@host:port/db?password=hunter2",
            "postgres://app@host/db?password=hunter2&connections=1",
            "postgres://app@host/db?sslmode=odd&password=hunter2",
            "app:hunter2@host/db",
        ] {
            let said = refused(url);
            assert!(
                !said.contains("hunter2") && !said.contains("ter2@"),
                "{said}"
            );
        }
        let options = PostgresOptions::new("postgres://app:hunter2@host/db").expect("valid");
        assert!(!format!("{options:?}").contains("hunter2"));
    }
}
