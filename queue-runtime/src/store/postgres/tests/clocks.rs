//! Whose clock counts.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::world::{Ground, job, request};
use crate::job::{Change, Due, JobId, NewJob, OutcomeKind, Settled, Settlement};
use crate::seam::{Seam, SystemSeam};
use crate::store::postgres::PostgresStore;
use crate::store::{Admin, Store};
use crate::time::Timestamp;

/// A machine whose clock is wrong by as much.
#[derive(Debug)]
struct Wrong {
    ahead: Duration,
    behind: Duration,
    system: SystemSeam,
}

impl Seam for Wrong {
    fn now(&self) -> Timestamp {
        let now = self.system.now();
        now.saturating_add(self.ahead).saturating_sub(self.behind)
    }

    fn elapsed(&self) -> Duration {
        self.system.elapsed()
    }

    fn sleep(&self, span: Duration) -> BoxFuture<'static, ()> {
        self.system.sleep(span)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) -> tokio::task::JoinHandle<()> {
        self.system.spawn(task)
    }

    fn spawn_apart(&self, name: &str, task: BoxFuture<'static, ()>) -> std::io::Result<()> {
        self.system.spawn_apart(name, task)
    }

    fn random(&self) -> u64 {
        self.system.random()
    }

    fn job_id(&self) -> JobId {
        self.system.job_id()
    }
}

/// Opens the store of a process on such a machine.
async fn opened(ground: &Ground, schema: &str, ahead: u64, behind: u64) -> PostgresStore {
    let seam = Arc::new(Wrong {
        ahead: Duration::from_mins(ahead),
        behind: Duration::from_mins(behind),
        system: SystemSeam::new(),
    });
    let options = ground.options(schema).seam(seam).migrate(true);
    PostgresStore::open(options).await.expect("opened")
}

/// O-056, O-057: two processes whose clocks are ten minutes before and behind the server's agree
/// on what is due and on whose lease has run out.
#[tokio::test]
async fn clocks_of_machines_ten_minutes_apart_decide_nothing() {
    let Some(mut ground) = Ground::shared() else {
        return;
    };
    let schema = ground.schema();
    let early = opened(&ground, &schema, 10, 0).await;
    let late = opened(&ground, &schema, 0, 10).await;
    let server = SystemSeam::new();

    // Due at once for both, whoever has stored it; and a delay is the server's.
    let due_in = |delay| NewJob {
        due: Due::After(Duration::from_mins(delay)),
        ..job()
    };
    for store in [&early, &late] {
        let added = store.insert(&[job(), due_in(5)]).await;
        added.expect("an old clock is no reason to refuse");
        let before = server.now();
        let now = store.now().await.expect("it answers");
        assert!(before <= now && now <= server.now(), "{now}");
    }
    let claimed = late.claim(&request(10)).await.expect("claimed");
    assert_eq!(claimed.len(), 2, "both that are due, and none that is not");
    assert_eq!(early.claim(&request(10)).await.expect("claimed"), []);
    let due = early.next_due(&request(1)).await.expect("it answers");
    let due = due.expect("two wait");
    assert!(
        due <= Duration::from_mins(5) && due > Duration::from_mins(4),
        "{due:?}"
    );

    // A lease of a minute has not run out for the one that is ahead, and its rescue is refused.
    assert_eq!(early.expired(10).await.expect("it answers"), []);
    let rescue = Settlement {
        id: claimed[0].id,
        token: claimed[0].token,
        change: Change::Queued {
            delay: Duration::ZERO,
        },
        outcome: OutcomeKind::Lost,
        error: None,
        attempts: 1,
        crashes: 1,
        snoozes: 0,
        only_if_expired: true,
    };
    let refused = early.settle(&[rescue]).await.expect("it answers");
    assert_eq!(refused, [Settled::Stale]);
    for run in &claimed {
        let record = late.job(run.id).await.expect("it answers").expect("stored");
        let until = record.locked_until.expect("under a lease");
        let left = until.since(server.now());
        assert!(
            left > Duration::from_secs(50) && left <= Duration::from_mins(1),
            "{left:?}"
        );
        for at in [record.run_at, record.created_at, record.updated_at] {
            assert!(server.now().since(at) < Duration::from_secs(10), "{at}");
        }
    }
    early.close().await;
    late.close().await;
    ground.end().await;
}
