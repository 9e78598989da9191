//! One order as the shop exports it, and the file that holds them.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// A row of the file, and the body of the request that tells a partner about it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) order_id: String,
    placed_at: String,
    customer_id: String,
    name: String,
    email: String,
    country: String,
    currency: String,
    amount_cents: i64,
    items: u32,
}

/// The currencies in which the receiver keeps books.
const CURRENCIES: [&str; 6] = ["CZK", "EUR", "GBP", "PLN", "SEK", "USD"];

impl Order {
    /// Says which rule of the receiver the order breaks.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let has_address = self
            .email
            .split_once('@')
            .is_some_and(|(local, host)| !local.is_empty() && host.contains('.'));
        if !has_address {
            Err("email must be an address")
        } else if self.amount_cents <= 0 {
            Err("amount_cents must be positive")
        } else if self.items == 0 {
            Err("items must be at least 1")
        } else if !CURRENCIES.contains(&self.currency.as_str()) {
            Err("currency must be one of CZK EUR GBP PLN SEK USD")
        } else if self.country.len() != 2 {
            Err("country must be a code of two letters")
        } else {
            Ok(())
        }
    }
}

/// Reads the whole file before anything is enqueued; an error names the line.
///
/// Only what is no order at all is refused here. Whether an order is acceptable is for its
/// receiver to say.
pub(crate) fn read(file: &Path) -> Result<Vec<Order>> {
    let mut rows = csv::Reader::from_path(file)
        .with_context(|| format!("cannot read {}", file.display()))?
        .into_deserialize();
    let mut orders = Vec::new();
    let mut lines = HashMap::new();
    loop {
        let line = rows.reader().position().line();
        let Some(row) = rows.next() else { break };
        let order: Order =
            row.with_context(|| format!("{} is no list of orders", file.display()))?;
        // The id travels in a header.
        let id = order.order_id.as_bytes();
        let is_plain = !id.is_empty() && id.iter().all(u8::is_ascii_graphic);
        let named = file.display();
        ensure!(
            is_plain,
            "{named} line {line}: order_id must be of ASCII letters, digits and signs"
        );
        if let Some(before) = lines.insert(order.order_id.clone(), line) {
            let (file, id) = (file.display(), &order.order_id);
            bail!("{file} line {line}: order {id} stands on line {before} already");
        }
        orders.push(order);
    }
    ensure!(!orders.is_empty(), "{} holds no orders", file.display());
    Ok(orders)
}
