//! Assertions about what a program has enqueued, by pattern on the typed payload.

/// Asserts that a job whose payload matches a pattern waits in a
/// [`TestQueue`](crate::TestQueue); lists the waiting jobs if none does.
///
/// The pattern is one of the payload's type, and may carry a condition:
/// `assert_enqueued!(test, SendWelcomeJob { user_id, .. } if *user_id > 40)`. Uses `.await`.
#[macro_export]
macro_rules! assert_enqueued {
    ($queue:expr, $pattern:pat $(if $condition:expr)?) => {{
        let jobs: ::std::vec::Vec<_> = $queue.enqueued().await;
        let found = jobs.iter().any(|job| ::core::matches!(job, $pattern $(if $condition)?));
        ::core::assert!(
            found,
            "no waiting job matches {}; these wait:\n{}",
            ::core::stringify!($pattern $(if $condition)?),
            $queue.describe_enqueued().await,
        );
    }};
}

/// Asserts that no job whose payload matches a pattern waits; see
/// [`assert_enqueued!`](crate::assert_enqueued).
#[macro_export]
macro_rules! assert_not_enqueued {
    ($queue:expr, $pattern:pat $(if $condition:expr)?) => {{
        let jobs: ::std::vec::Vec<_> = $queue.enqueued().await;
        let found = jobs.iter().any(|job| ::core::matches!(job, $pattern $(if $condition)?));
        ::core::assert!(
            !found,
            "a waiting job matches {}; these wait:\n{}",
            ::core::stringify!($pattern $(if $condition)?),
            $queue.describe_enqueued().await,
        );
    }};
}
