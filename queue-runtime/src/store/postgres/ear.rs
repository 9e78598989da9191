//! The one connection that listens: opened, heard, and let go of so that nothing stays behind.
//!
//! sqlx's listener opens a lost connection anew by itself and says nothing of one that is dead
//! and was not closed. Here it does neither: it has a pool of its own that holds its connection
//! alone, and is given up with it.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgListener, PgNotification, PgPool};
use sqlx::{Acquire, Error as SqlxError};

use super::connect;
use super::options::PostgresOptions;
use crate::error::StoreError;
use crate::seam::Seam;

/// How long the server may take to say goodbye.
const GOODBYE_MAX: Duration = Duration::from_secs(1);

/// A connection that listens.
pub(super) struct Ear {
    listener: PgListener,
    pool: PgPool,
}

impl Ear {
    /// Connects and listens on channels.
    pub(super) async fn open(
        options: &PostgresOptions,
        channels: [&str; 2],
    ) -> Result<Self, StoreError> {
        let pool = connect::pool_of_one(options);
        let open = async {
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.ignore_pool_close_event(true);
            listener.eager_reconnect(false);
            listener.listen_all(channels).await?;
            Ok(listener)
        };
        let opened = connect::within(&*options.seam, connect::CONNECT_MAX, "listen", open).await?;
        let listener = opened.map_err(|error| connect::explained(options, "listen", error))?;
        Ok(Self { listener, pool })
    }

    /// Waits for the next notification; `None` once the connection is closed. Nothing is lost if
    /// the future is dropped.
    pub(super) async fn next(&mut self) -> Result<Option<PgNotification>, SqlxError> {
        self.listener.try_recv().await
    }

    /// Ends a connection that works.
    pub(super) async fn close(self, seam: &dyn Seam) {
        // Ends listening by a task of sqlx, which the pool then waits for.
        drop(self.listener);
        let goodbye = connect::within(seam, GOODBYE_MAX, "listen", self.pool.close()).await;
        if let Err(error) = goodbye {
            tracing::debug!(%error, "the listening connection did not end cleanly");
        }
    }

    /// Lets go of a connection that does not answer. Its end is another connection's: sqlx would
    /// say goodbye on the dead one, by a task that waits for an answer as long as the system keeps
    /// the socket.
    pub(super) async fn abandon(mut self, fresh: PgConnection, seam: &dyn Seam) {
        let take = async {
            let dead = (&mut self.listener).acquire().await?;
            drop(std::mem::replace(dead, fresh));
            Ok::<_, SqlxError>(())
        };
        // It is ready at once while there is a connection.
        let _ = connect::within(seam, GOODBYE_MAX, "listen", take).await;
        self.close(seam).await;
    }
}
