//! The exchanges with the store: results go out, claimed jobs come back. Results whose rows
//! somebody else's transaction holds go out beside the others.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::Shared;
use crate::error::StoreError;
use crate::failpoint;
use crate::job::{Claimed, Settled};
use crate::pipeline::settle::{self, Pending};
use crate::store::{ClaimRequest, apart};

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

/// An exchange that was begun.
pub(super) struct Exchanging {
    /// How many results it carries.
    results: usize,
    exchanged: BoxFuture<'static, Exchanged>,
}

impl Exchanging {
    pub(super) fn begin(shared: Arc<Shared>, batch: Vec<Pending>, request: ClaimRequest) -> Self {
        Self {
            results: batch.len(),
            exchanged: Box::pin(exchange(shared, batch, request)),
        }
    }
}

impl Future for Exchanging {
    type Output = Exchanged;

    fn poll(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Exchanged> {
        self.exchanged.as_mut().poll(cx)
    }
}

/// What is under way.
#[derive(Default)]
pub(super) struct UnderWay {
    /// The next exchange.
    pub(super) next: Option<Exchanging>,
    /// One more try of results that were held.
    pub(super) held: Option<Exchanging>,
}

impl UnderWay {
    pub(super) fn is_nothing(&self) -> bool {
        self.next.is_none() && self.held.is_none()
    }

    /// How many results are on their way to the store.
    pub(super) fn results(&self) -> usize {
        let both = self.next.iter().chain(&self.held);
        both.map(|exchanging| exchanging.results).sum()
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
async fn exchange(shared: Arc<Shared>, batch: Vec<Pending>, request: ClaimRequest) -> Exchanged {
    let store = shared.backend.store().as_ref();
    let asked = shared.backend.seam().elapsed();
    let settlements: Vec<_> = batch
        .iter()
        .map(|pending| pending.settlement.clone())
        .collect();
    let answer = async {
        failpoint::point!("settle.unsent", if !settlements.is_empty());
        let (mut settled, claimed) = match (settlements.as_slice(), request.limit) {
            (settlements, 0) => (apart::settle(store, settlements).await?, Vec::new()),
            ([], _) => (Vec::new(), store.claim(&request).await?),
            (settlements, _) => apart::exchange(store, settlements, &request).await?,
        };
        failpoint::point!("settle.unheard", if !settled.is_empty());
        failpoint::point!("claim.unheard", if !claimed.is_empty());
        for (pending, answer) in batch.iter().zip(&mut settled) {
            if pending.is_uncertain && *answer == Settled::Stale {
                // Without an answer it stays what the store said.
                *answer = settle::resolve(pending, store).await.unwrap_or(*answer);
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
pub(super) async fn wait<F: Future + Unpin>(future: &mut Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
