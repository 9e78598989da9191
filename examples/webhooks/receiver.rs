//! The partner who is told about the orders: busy, sometimes deaf, strict, and careful to ship
//! once.
//!
//! Its moods follow from the order's id alone, so every run meets the same ones. Its ledger lives
//! in the parent process and survives the workers that are killed.

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::http::{self, Answer};
use super::orders::Order;

/// How long the receiver works on an order.
const WORK: Duration = Duration::from_millis(15);

/// A running receiver on a free port of this machine; it ends when it is dropped.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    desk: Arc<Desk>,
    _serving: JoinSet<()>,
}

/// How the receiver meets an order for the first time.
#[derive(Clone, Copy)]
enum Mood {
    Willing,
    /// Answers 503.
    Busy,
    /// Never answers.
    Deaf,
    /// Ships, and never answers: the sender cannot know that it was heard.
    Mute,
}

impl Mood {
    fn towards(order_id: &str) -> Self {
        match scatter(order_id) % 100 {
            0..33 => Self::Busy,
            33 => Self::Deaf,
            34 => Self::Mute,
            _ => Self::Willing,
        }
    }
}

/// Where orders are taken in.
struct Desk {
    ledger: Mutex<Ledger>,
    shipped: watch::Sender<usize>,
}

#[derive(Default)]
struct Ledger {
    /// Keys that asked before.
    asked: HashSet<String>,
    /// Keys whose order has been shipped.
    known: HashSet<String>,
    /// How often each order was shipped, whatever the key: the effect that must happen once.
    shipments: HashMap<String, usize>,
    /// Requests whose order had been shipped under their key.
    repeats: usize,
}

impl Receiver {
    pub(crate) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let desk = Arc::new(Desk {
            ledger: Mutex::default(),
            shipped: watch::Sender::new(0),
        });
        let mut serving = JoinSet::new();
        serving.spawn(http::serve(listener, Arc::clone(&desk)));
        Ok(Self {
            address,
            desk,
            _serving: serving,
        })
    }

    /// Waits until so many orders have been shipped.
    pub(crate) async fn shipped(&self, orders: usize) {
        let mut shipped = self.desk.shipped.subscribe();
        // The sender lives as long as `self`, so this cannot fail.
        let _ = shipped.wait_for(|shipped| *shipped >= orders).await;
    }

    /// Returns how many requests were repeats that the ledger knew.
    pub(crate) fn repeats(&self) -> usize {
        self.desk.ledger().repeats
    }

    /// Returns how often each order was shipped.
    pub(crate) fn shipments(&self) -> HashMap<String, usize> {
        self.desk.ledger().shipments.clone()
    }
}

impl Desk {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ships an order unless its key is known, in one step: two requests with one key that come
    /// at the same time ship once.
    fn ship(&self, key: &str, order: &Order) -> &'static str {
        let mut ledger = self.ledger();
        if !ledger.known.insert(key.to_owned()) {
            ledger.repeats += 1;
            return "already";
        }
        *ledger.shipments.entry(order.order_id.clone()).or_default() += 1;
        self.shipped.send_modify(|shipped| *shipped += 1);
        "shipped"
    }
}

impl Answer for Desk {
    async fn answer(&self, key: &str, json: &[u8]) -> (u16, String) {
        let order: Order = match serde_json::from_slice(json) {
            Ok(order) => order,
            Err(error) => return (400, format!("no order: {error}")),
        };
        if let Err(rule) = order.check() {
            return (400, rule.to_owned());
        }
        let asks_first = self.ledger().asked.insert(key.to_owned());
        tokio::time::sleep(WORK).await;
        match Mood::towards(&order.order_id) {
            Mood::Busy if asks_first => return (503, "try again later".to_owned()),
            Mood::Deaf if asks_first => std::future::pending().await,
            Mood::Mute if asks_first => {
                self.ship(key, &order);
                std::future::pending().await
            }
            _ => {}
        }
        (200, self.ship(key, &order).to_owned())
    }
}

/// Spreads ids evenly: FNV-1a, whose upper bits are the better mixed ones.
fn scatter(id: &str) -> u64 {
    let fnv = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    id.bytes().fold(0xcbf2_9ce4_8422_2325, fnv) >> 24
}
