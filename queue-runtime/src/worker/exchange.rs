//! The exchanges with the store: results go out, claimed jobs come back. Results whose rows
//! somebody else's transaction holds go out beside the others.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Shared;
use crate::error::StoreError;
use crate::job::{Claimed, Settled};
use crate::pipeline::settle::{self, Pending};
use crate::store::ClaimRequest;

/// What an exchange with the store came to.
pub(super) struct Exchanged {
    pub(super) batch: Vec<Pending>,
    pub(super) limit: usize,
    pub(super) asked: Duration,
    pub(super) answer: Result<Answer, StoreError>,
}

pub(super) struct Answer {
    pub(super) settled: Vec<Settled>,
    pub(super) claimed: Vec<Claimed>,
    pub(super) next_due: Option<Duration>,
}

/// What is under way.
#[derive(Default)]
pub(super) struct UnderWay {
    /// The next exchange.
    pub(super) next: Option<BoxFuture<'static, Exchanged>>,
    /// One more try of results that were held.
    pub(super) held: Option<BoxFuture<'static, Exchanged>>,
}

impl UnderWay {
    pub(super) fn is_nothing(&self) -> bool {
        self.next.is_none() && self.held.is_none()
    }

    /// Waits until one of them has come to its end.
    pub(super) async fn done(&mut self) -> Exchanged {
        tokio::select! {
            biased;
            done = wait(&mut self.next) => {
                self.next = None;
                done
            }
            done = wait(&mut self.held) => {
                self.held = None;
                done
            }
        }
    }
}

/// Says and asks in one transaction where both are wanted.
pub(super) async fn exchange(
    shared: Arc<Shared>,
    batch: Vec<Pending>,
    request: ClaimRequest,
) -> Exchanged {
    let store = shared.backend.store();
    let asked = shared.backend.seam().elapsed();
    let settlements: Vec<_> = batch
        .iter()
        .map(|pending| pending.settlement.clone())
        .collect();
    let answer = async {
        let (mut settled, claimed) = match (settlements.as_slice(), request.limit) {
            (settlements, 0) => (store.settle(settlements).await?, Vec::new()),
            ([], _) => (Vec::new(), store.claim(&request).await?),
            (settlements, _) => store.exchange(settlements, &request).await?,
        };
        for (pending, answer) in batch.iter().zip(&mut settled) {
            if pending.is_uncertain && *answer == Settled::Stale {
                // Without an answer it stays what the store said.
                *answer = settle::resolve(pending, store.as_ref())
                    .await
                    .unwrap_or(*answer);
            }
        }
        // What was claimed must not be lost with a look ahead that fails: the poll stands behind.
        let next_due = match claimed.len() < request.limit {
            true => store.next_due(&request).await.ok().flatten(),
            false => None,
        };
        Ok(Answer {
            settled,
            claimed,
            next_due,
        })
    };
    let answer = answer.await;
    Exchanged {
        limit: request.limit,
        batch,
        asked,
        answer,
    }
}

/// Waits for what is under way, or for ever if nothing is.
pub(super) async fn wait<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
