//! A door before a Postgres server that can lose what connections say on which somebody listens,
//! as a firewall does that has forgotten them: nothing is closed, nothing arrives.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use queue_runtime::store::postgres::PostgresOptions;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Forwards connections until it is dropped.
pub(crate) struct Forwarder {
    server: PgConnectOptions,
    port: u16,
    rules: Arc<Rules>,
    door: JoinHandle<()>,
}

#[derive(Default)]
struct Rules {
    lines: Mutex<Vec<(Arc<Line>, End)>>,
    refuses_listeners: AtomicBool,
}

impl Rules {
    fn note(&self, line: (Arc<Line>, End)) {
        let mut lines = self.lines.lock().expect("no panic while noting");
        lines.push(line);
    }
}

/// Waits for the end of a connection, which is an error to it.
pub(crate) type End = watch::Receiver<()>;

/// One connection.
#[derive(Default)]
struct Line {
    listens: AtomicBool,
    swallows: AtomicBool,
}

impl Forwarder {
    /// Opens a door before the server of this address.
    pub(crate) async fn start(url: &str) -> Self {
        let server: PgConnectOptions = url.parse().expect("the server's address");
        let door = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = door.local_addr().expect("it is bound").port();
        let rules = Arc::<Rules>::default();
        let target = (server.get_host().to_owned(), server.get_port());
        let serving = Arc::clone(&rules);
        let door = tokio::spawn(async move {
            while let Ok((client, _)) = door.accept().await {
                let server = TcpStream::connect(target.clone()).await;
                let server = server.expect("the server is there");
                drop(tokio::spawn(forward(Arc::clone(&serving), client, server)));
            }
        });
        Self {
            server,
            port,
            rules,
            door,
        }
    }

    /// How to reach a schema of the server through this door.
    pub(crate) fn options(&self, schema: &str) -> PostgresOptions {
        let server = self.server.clone().host("127.0.0.1").port(self.port);
        let pool = PgPoolOptions::new().connect_lazy_with(server);
        let options = PostgresOptions::from_pool(&pool).schema(schema);
        options.expect("a schema's name")
    }

    /// Loses everything from now on that the connections say that listen now; returns their ends.
    pub(crate) fn swallow_listeners(&self) -> Vec<End> {
        let lines = self.rules.lines.lock().expect("no panic while noting");
        lines
            .iter()
            .filter(|(line, _)| line.listens.load(Ordering::SeqCst))
            .map(|(line, end)| {
                line.swallows.store(true, Ordering::SeqCst);
                end.clone()
            })
            .collect()
    }

    /// Closes every connection that begins to listen.
    pub(crate) fn refuse_listeners(&self) {
        self.rules.refuses_listeners.store(true, Ordering::SeqCst);
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.door.abort();
    }
}

/// Carries what both sides say until one of them is gone.
async fn forward(rules: Arc<Rules>, client: TcpStream, server: TcpStream) {
    let (line, (open, end)) = (Arc::<Line>::default(), watch::channel(()));
    rules.note((Arc::clone(&line), end));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let asks = |said: &[u8]| {
        let listens = said.windows(7).any(|word| word == b"LISTEN ");
        line.listens.fetch_or(listens, Ordering::SeqCst);
        !(listens && rules.refuses_listeners.load(Ordering::SeqCst))
    };
    tokio::select! {
        () = carry(from_client, to_server, &line, asks) => {}
        () = carry(from_server, to_client, &line, |_| true) => {}
    }
    drop(open);
}

/// Carries one direction until it ends, or `goes_on` says that it does.
async fn carry(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    line: &Line,
    goes_on: impl Fn(&[u8]) -> bool,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let said = &buffer[..length];
        if !goes_on(said) {
            return;
        }
        if !line.swallows.load(Ordering::SeqCst) && to.write_all(said).await.is_err() {
            return;
        }
    }
}
