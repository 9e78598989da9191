//! A caller's transaction that a job can be enqueued in, whatever database it belongs to.

/// A borrowed transaction; made by `in_tx` from sqlx's types.
#[derive(Debug)]
#[non_exhaustive]
pub enum Tx<'t> {
    /// A connection of an SQLite database, with or without an open transaction.
    #[cfg(feature = "sqlite")]
    Sqlite(&'t mut sqlx::SqliteConnection),
    /// Only here while no store is compiled in.
    #[cfg(not(feature = "sqlite"))]
    #[doc(hidden)]
    None(std::convert::Infallible, std::marker::PhantomData<&'t ()>),
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
