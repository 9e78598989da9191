//! A caller's transaction that a job can be enqueued in, whatever database it belongs to.

/// A borrowed transaction; made by `in_tx` from sqlx's types.
#[derive(Debug)]
#[non_exhaustive]
pub enum Tx<'t> {
    /// A connection of an SQLite database, with or without an open transaction.
    #[cfg(feature = "sqlite")]
    Sqlite(&'t mut sqlx::SqliteConnection),
    /// A connection of a Postgres database, with or without an open transaction.
    #[cfg(feature = "postgres")]
    Postgres(&'t mut sqlx::PgConnection),
    /// Only here while no store is compiled in.
    #[cfg(not(any(feature = "sqlite", feature = "postgres")))]
    #[doc(hidden)]
    None(std::convert::Infallible, std::marker::PhantomData<&'t ()>),
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
impl Tx<'_> {
    /// What kind of database it is on, for people.
    pub(crate) fn database(&self) -> &'static str {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(_) => "an SQLite file, as the transaction is",
            #[cfg(feature = "postgres")]
            Self::Postgres(_) => "a Postgres database, as the transaction is",
        }
    }
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use sqlx::pool::PoolConnection;
    use sqlx::{Sqlite, SqliteConnection, Transaction};

    use super::Tx;

    impl<'t> From<&'t mut SqliteConnection> for Tx<'t> {
        fn from(connection: &'t mut SqliteConnection) -> Self {
            Self::Sqlite(connection)
        }
    }

    impl<'t> From<&'t mut Transaction<'_, Sqlite>> for Tx<'t> {
        fn from(tx: &'t mut Transaction<'_, Sqlite>) -> Self {
            Self::Sqlite(tx)
        }
    }

    impl<'t> From<&'t mut PoolConnection<Sqlite>> for Tx<'t> {
        fn from(connection: &'t mut PoolConnection<Sqlite>) -> Self {
            Self::Sqlite(connection)
        }
    }
}

#[cfg(feature = "postgres")]
mod postgres {
    use sqlx::pool::PoolConnection;
    use sqlx::{PgConnection, Postgres, Transaction};

    use super::Tx;

    impl<'t> From<&'t mut PgConnection> for Tx<'t> {
        fn from(connection: &'t mut PgConnection) -> Self {
            Self::Postgres(connection)
        }
    }

    impl<'t> From<&'t mut Transaction<'_, Postgres>> for Tx<'t> {
        fn from(tx: &'t mut Transaction<'_, Postgres>) -> Self {
            Self::Postgres(tx)
        }
    }

    impl<'t> From<&'t mut PoolConnection<Postgres>> for Tx<'t> {
        fn from(connection: &'t mut PoolConnection<Postgres>) -> Self {
            Self::Postgres(connection)
        }
    }
}
