//! Tables that are being made when their maker goes away: the next one makes them, or finds them.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use queue_runtime::job;

use crate::child::Child;
use crate::world::{World, open_at};

on! { sqlite:
    real {
        o_104_an_opening_that_is_given_up_at_any_moment_hinders_no_other
        o_105_a_process_killed_while_it_makes_the_tables_leaves_no_half_of_them
    }
}

#[job]
async fn is_stored() {}

/// Says that a queue can be opened here, and used.
async fn can_be_used(url: &str) {
    let queue = open_at(url).await.expect("nothing is in the way");
    is_stored::enqueue(&queue)
        .await
        .expect("the tables are there");
    assert_eq!(queue.counts().await.expect("it answers").total(), 1);
    queue.close().await;
}

/// A future that is given up at a certain step.
struct UpTo<F> {
    steps: usize,
    work: Pin<Box<F>>,
}

impl<F: Future> Future for UpTo<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.steps == 0 {
            return Poll::Ready(None);
        }
        self.steps -= 1;
        self.work.as_mut().poll(cx).map(Some)
    }
}

/// One file for each step, until opening is done before it can be given up.
async fn o_104_an_opening_that_is_given_up_at_any_moment_hinders_no_other(world: &World) {
    let mut steps = 1;
    loop {
        let url = format!("{}.{steps}", world.url());
        let work = Box::pin(open_at(&url));
        let opened = UpTo { steps, work }.await;
        can_be_used(&url).await;
        if let Some(opened) = opened {
            opened.expect("nobody was in the way").close().await;
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "opening has only {steps} steps");
}

/// Killed when the file is there, when its log is, and as the log grows: the tables come with
/// one commit, after which there is nothing more to kill.
async fn o_105_a_process_killed_while_it_makes_the_tables_leaves_no_half_of_them(world: &World) {
    let length = |path: &str| std::fs::metadata(path).map_or(0, |file| file.len());
    for round in 0..6 {
        let url = format!("{}.{round}", world.url());
        let path = url.trim_start_matches("sqlite://").to_owned();
        let log = format!("{path}-wal");
        let mut child = Child::start_at("opens", &url);
        child.says("opening").await;
        loop {
            let is_so_far = match round {
                0 => true,
                1 => Path::new(&path).exists(),
                2 => Path::new(&log).exists(),
                round => length(&log) > 1 << (4 * round),
            };
            if is_so_far || child.has_ended() {
                break;
            }
            tokio::task::yield_now().await;
        }
        child.kill().await;
        can_be_used(&url).await;
    }
}
