//! The pages under `docs`, so that their programs are compiled and run as doc tests.

/// Pages whose programs a reader copies.
macro_rules! pages {
    ($($page:ident $path:literal;)*) => {
        $(
            #[doc = include_str!($path)]
            #[doc(hidden)]
            pub mod $page {}
        )*
    };
}

pages! {
    caching "../../docs/caching.md";
    choosing "../../docs/choosing.md";
    deploying "../../docs/deploying.md";
    errors "../../docs/errors.md";
    idempotency "../../docs/idempotency.md";
    lockfile "../../docs/lockfile.md";
    payloads "../../docs/payloads.md";
    postgres "../../docs/postgres.md";
    sqlite "../../docs/sqlite.md";
    testing "../../docs/testing.md";
    verifying "../../docs/verifying.md";
}
