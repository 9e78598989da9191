//! Replaying a job with another payload: both happen or neither.

use queue_runtime::job::{CacheKey, DedupeUntil, JobState, NewJob, OnDuplicate};
use queue_runtime::store::{Edit, EditedJob, Inserted, Replaying};

use super::jobs::{
    HOUR, JOB_TYPE, OTHER_REQUEST, REQUEST, SECOND, called_off, dead, done, held, job_type, keep,
    once, rerun,
};
use super::races::together;
use super::subject::Subject;

const PAYLOAD: &str = r#"{"user_id":43,"name":"Zoë \u0001 🦀"}"#;
const SCHEMA: u32 = 2;

/// Another payload, from somebody who knows no types.
fn untyped() -> Edit {
    Edit::new(PAYLOAD, SCHEMA).expect("a payload that may be stored")
}

/// Another payload for a job of the cases' type, without any key.
fn of_job() -> EditedJob {
    EditedJob {
        job_types: vec![job_type(JOB_TYPE)],
        dedupe_key: None,
        dedupe_until_started: false,
        cache: None,
    }
}

fn with_key(key: &str) -> Edit {
    untyped().of_job(EditedJob {
        dedupe_key: Some(key.to_owned()),
        ..of_job()
    })
}

fn refreshing(version: u64) -> Edit {
    untyped().of_job(EditedJob {
        cache: cached("new", version),
        ..of_job()
    })
}

fn cached(key: &str, version: u64) -> Option<CacheKey> {
    let key = key.to_owned();
    Some(CacheKey { key, version })
}

fn keyed(s: &Subject, key: &str) -> NewJob {
    NewJob {
        dedupe: keep(key),
        ..s.job()
    }
}

/// Replays a job with an edit, which says nothing about its keys or the same as is stored; nothing
/// differs from a plain replay but the payload.
async fn waits_with_the_payload(s: &Subject, job: &NewJob, edit: &Edit) {
    let mut expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.replay_with(job.id, edit).await, Replaying::Replayed);

    let record = expected.replayed(job.id, s.now());
    PAYLOAD.clone_into(&mut record.payload);
    record.payload_schema = SCHEMA;
    s.shows(&expected).await;
}

/// Tries to replay a job with an edit, and says that nothing changed.
async fn stays(s: &Subject, job: &NewJob, edit: &Edit, answer: Replaying) {
    let expected = s.picture().await;
    s.advance(SECOND);

    assert_eq!(s.replay_with(job.id, edit).await, answer);

    s.shows(&expected).await;
}

pub async fn an_edited_dead_letter_waits_with_its_new_payload(s: &Subject) {
    let job = NewJob {
        deadline: Some(SECOND * 5),
        priority: 3,
        trace_context: Some("00-a-b-01".to_owned()),
        ..s.job()
    };
    let old = s.settled(&job, dead).await;

    waits_with_the_payload(s, &job, &untyped()).await;

    let run = s.take().await;
    assert_eq!((run.id, run.payload.as_str()), (job.id, PAYLOAD));
    assert_eq!((run.payload_schema, run.attempt), (SCHEMA, 1));
    assert!(run.token > old.token, "the token still rises");
    assert_eq!(
        s.settle(&[done(&old)]).await,
        [queue_runtime::job::Settled::Stale]
    );
    s.apply(done(&run)).await;
    let history = s.attempts(job.id).await;
    let tokens: Vec<_> = history.iter().map(|attempt| attempt.token).collect();
    assert_eq!(tokens, [old.token, run.token]);
}

pub async fn an_edited_cancelled_job_waits_with_its_new_payload(s: &Subject) {
    let (ran, waited) = (s.job(), s.job());
    s.settled(&ran, called_off).await;
    s.add(&waited).await;
    s.cancel(waited.id).await;

    waits_with_the_payload(s, &ran, &untyped()).await;
    waits_with_the_payload(s, &waited, &untyped()).await;

    assert_eq!(s.claim_all().await.len(), 2);
}

pub async fn only_an_edit_as_new_raises_the_generation(s: &Subject) {
    let job = s.job();
    s.settled(&job, dead).await;
    for (as_new, generation) in [(false, 0), (true, 1)] {
        let replayed = s.store().replay_with(job.id, as_new, &untyped()).await;
        assert_eq!(replayed.expect("it answers"), Replaying::Replayed);
        let run = s.take().await;
        assert_eq!(run.generation, generation);
        s.apply(dead(&run)).await;
    }
}

pub async fn an_untyped_edit_leaves_every_key_as_stored(s: &Subject) {
    let job = NewJob {
        cache: cached("old", 4),
        idempotency: once("i", REQUEST),
        ..keyed(s, "k")
    };
    s.settled(&job, dead).await;

    waits_with_the_payload(s, &job, &untyped()).await;

    let record = s.record(job.id).await;
    assert_eq!(record.dedupe_key.as_deref(), Some("k"));
    assert_eq!(record.cache, cached("old", 4));
}

pub async fn a_typed_edit_sets_the_dedupe_key_and_the_cache_entry(s: &Subject) {
    let job = NewJob {
        cache: cached("old", 4),
        ..keyed(s, "k")
    };
    s.settled(&job, dead).await;
    let mut expected = s.picture().await;
    s.advance(SECOND);
    let edit = untyped().of_job(EditedJob {
        dedupe_key: Some("m".to_owned()),
        cache: cached("new", 7),
        ..of_job()
    });

    assert_eq!(s.replay_with(job.id, &edit).await, Replaying::Replayed);

    let record = expected.replayed(job.id, s.now());
    PAYLOAD.clone_into(&mut record.payload);
    record.payload_schema = SCHEMA;
    record.dedupe_key = Some("m".to_owned());
    record.cache = cached("new", 7);
    s.shows(&expected).await;
    assert_eq!(s.take().await.cache, cached("new", 7));
}

pub async fn a_typed_edit_without_keys_takes_them_away(s: &Subject) {
    let job = NewJob {
        cache: cached("old", 4),
        ..keyed(s, "k")
    };
    s.settled(&job, dead).await;

    let edit = untyped().of_job(of_job());
    assert_eq!(s.replay_with(job.id, &edit).await, Replaying::Replayed);

    let record = s.record(job.id).await;
    assert_eq!((record.dedupe_key, record.cache), (None, None));
    let newcomer = keyed(s, "k");
    s.add(&newcomer).await;
}

pub async fn an_edited_job_holds_its_new_key_and_not_the_old_one(s: &Subject) {
    let job = keyed(s, "k");
    s.settled(&job, dead).await;

    s.replay_with(job.id, &with_key("m")).await;

    let kept = Inserted::Duplicate {
        existing: job.id,
        state: JobState::Queued,
        payload_differs: true,
    };
    assert_eq!(s.offer(&keyed(s, "m")).await, kept);
    let newcomer = keyed(s, "k");
    s.add(&newcomer).await;
    assert_eq!(s.claim_all().await.len(), 2);
}

pub async fn a_dead_letter_stays_while_a_live_job_holds_the_key_of_its_edit(s: &Subject) {
    let old = NewJob {
        cache: cached("old", 4),
        ..keyed(s, "k")
    };
    s.settled(&old, dead).await;
    let live = NewJob {
        dedupe: rerun("m"),
        ..s.job()
    };
    let edit = untyped().of_job(EditedJob {
        dedupe_key: Some("m".to_owned()),
        cache: cached("new", 7),
        ..of_job()
    });

    s.add(&live).await;
    stays(s, &old, &edit, Replaying::Duplicate(live.id)).await;
    let run = s.take().await;
    stays(s, &old, &edit, Replaying::Duplicate(live.id)).await;
    let behind = NewJob {
        dedupe: rerun("m"),
        ..s.job()
    };
    s.add(&behind).await;
    stays(s, &old, &edit, Replaying::Duplicate(live.id)).await;
    assert_eq!(s.newest_version("new").await, None, "nothing was announced");

    s.apply(done(&run)).await;
    let run = s.take().await;
    s.apply(done(&run)).await;
    assert_eq!(s.replay_with(old.id, &edit).await, Replaying::Replayed);
    assert_eq!(s.newest_version("new").await, Some(7));
}

pub async fn a_dead_letter_stays_while_a_live_job_holds_its_unedited_key(s: &Subject) {
    let old = keyed(s, "k");
    s.settled(&old, dead).await;
    let live = keyed(s, "k");
    s.add(&live).await;

    stays(s, &old, &untyped(), Replaying::Duplicate(live.id)).await;
    stays(s, &old, &with_key("k"), Replaying::Duplicate(live.id)).await;
}

pub async fn a_live_job_under_the_old_key_hinders_no_edit_of_the_key(s: &Subject) {
    let old = keyed(s, "k");
    s.settled(&old, dead).await;
    let live = keyed(s, "k");
    s.add(&live).await;

    assert_eq!(
        s.replay_with(old.id, &with_key("m")).await,
        Replaying::Replayed
    );

    assert_eq!(s.claim_all().await.len(), 2);
    s.picture().await;
}

pub async fn a_key_of_an_edit_is_given_up_when_the_edit_says_so(s: &Subject) {
    for (until_started, held_while_running) in [(true, None), (false, Some("m".to_owned()))] {
        let until = match until_started {
            true => DedupeUntil::Finished,
            false => DedupeUntil::Started,
        };
        let job = NewJob {
            dedupe: held("k", until, OnDuplicate::Keep),
            ..s.job()
        };
        s.settled(&job, dead).await;
        let edit = untyped().of_job(EditedJob {
            dedupe_key: Some("m".to_owned()),
            dedupe_until_started: until_started,
            ..of_job()
        });
        s.replay_with(job.id, &edit).await;
        let waiting = s.record(job.id).await;
        assert_eq!(waiting.dedupe_key.as_deref(), Some("m"));

        let run = s.take().await;

        assert_eq!(s.record(job.id).await.dedupe_key, held_while_running);
        s.apply(done(&run)).await;
    }
}

pub async fn a_window_is_neither_asked_nor_opened_by_an_edit(s: &Subject) {
    let windowed = |key| NewJob {
        dedupe: held(key, DedupeUntil::Window(HOUR), OnDuplicate::Keep),
        ..s.job()
    };
    let (job, other) = (windowed("k"), windowed("m"));
    s.settled(&job, dead).await;
    s.add(&other).await;

    assert_eq!(
        s.replay_with(job.id, &with_key("m")).await,
        Replaying::Replayed
    );

    for (key, existing) in [("k", job.id), ("m", other.id)] {
        let answer = s.offer(&windowed(key)).await;
        assert!(
            matches!(answer, Inserted::Duplicate { existing: found, .. } if found == existing),
            "{key}: {answer:?}"
        );
    }
}

pub async fn an_edit_raises_the_version_and_never_lowers_it(s: &Subject) {
    let job = s.job();
    s.settled(&job, dead).await;
    for (version, newest) in [(5, 5), (3, 5), (9, 9)] {
        s.replay_with(job.id, &refreshing(version)).await;
        assert_eq!(s.newest_version("new").await, Some(newest));
        let run = s.take().await;
        assert_eq!(run.cache, cached("new", version));
        s.apply(dead(&run)).await;
    }
}

/// The key answers for the request as its caller made it, whatever an operator made of the job.
pub async fn a_request_is_answered_by_the_edited_job(s: &Subject) {
    let request = |fingerprint| NewJob {
        idempotency: once("i", fingerprint),
        ..s.job()
    };
    let job = request(REQUEST);
    s.settled(&job, dead).await;
    s.replay_with(job.id, &with_key("m")).await;

    s.advance(HOUR * 2);
    assert_eq!(s.prune(HOUR, 10).await.idempotency_keys, 0);
    let answer = s.offer(&request(REQUEST)).await;
    assert!(
        matches!(answer, Inserted::Duplicate { existing, .. } if existing == job.id),
        "{answer:?}"
    );
    let answer = s.offer(&request(OTHER_REQUEST)).await;
    assert!(matches!(answer, Inserted::Conflict { .. }), "{answer:?}");
}

pub async fn an_edit_for_another_type_changes_nothing(s: &Subject) {
    let job = keyed(s, "k");
    s.settled(&job, dead).await;
    let other = untyped().of_job(EditedJob {
        job_types: vec![job_type("bill"), job_type("send_welcome_again")],
        ..of_job()
    });
    let live = keyed(s, "k");
    s.add(&live).await;

    stays(s, &job, &other, Replaying::OtherType(job_type(JOB_TYPE))).await;
}

pub async fn an_edit_for_any_of_its_names_is_taken(s: &Subject) {
    let job = s.job();
    s.settled(&job, dead).await;
    let renamed = untyped().of_job(EditedJob {
        job_types: vec![job_type("greet"), job_type(JOB_TYPE)],
        ..of_job()
    });

    waits_with_the_payload(s, &job, &renamed).await;

    assert_eq!(s.take().await.job_type, job_type(JOB_TYPE));
}

pub async fn a_job_in_any_other_state_is_not_edited(s: &Subject) {
    let finished = s.job();
    s.settled(&finished, done).await;
    let running = s.job();
    s.running(&running).await;
    let waiting = s.job();
    s.add(&waiting).await;

    let states = [
        (finished, JobState::Done),
        (running, JobState::Processing),
        (waiting, JobState::Queued),
    ];
    for (job, state) in states {
        for edit in [untyped(), with_key("m"), refreshing(7)] {
            stays(s, &job, &edit, Replaying::NotReplayable(state)).await;
        }
    }
    assert_eq!(s.newest_version("new").await, None);
}

pub async fn editing_nothing_is_not_found(s: &Subject) {
    stays(s, &s.job(), &refreshing(7), Replaying::NotFound).await;
    assert_eq!(s.newest_version("new").await, None);
}

pub async fn one_of_many_edits_takes_place(s: &Subject) {
    let run = s.settled(&s.job(), dead).await;
    let payload = |index: usize| format!(r#"{{"user_id":{index}}}"#);

    let replies = together(s, 12, |index, store| async move {
        let edit = Edit::new(payload(index), SCHEMA).expect("a payload that may be stored");
        let reply = store.replay_with(run.id, true, &edit).await;
        reply.expect("replay_with answers")
    })
    .await;

    let mut taken = (0..12).filter(|index| replies[*index] == Replaying::Replayed);
    let winner = taken.next().expect("one takes place");
    assert_eq!(taken.next(), None, "{replies:?}");
    let record = s.record(run.id).await;
    assert_eq!((record.payload, record.generation), (payload(winner), 1));
}

pub async fn an_edit_and_a_newcomer_never_both_take_the_key(s: &Subject) {
    for _ in 0..10 {
        let old = keyed(s, "k");
        s.settled(&old, dead).await;
        let new = NewJob {
            cache: cached("new", 3),
            ..keyed(s, "m")
        };
        let edit = untyped().of_job(EditedJob {
            dedupe_key: Some("m".to_owned()),
            cache: cached("new", 4),
            ..of_job()
        });

        let took_it = together(s, 2, |index, store| {
            let (old, new, edit) = (old.id, new.clone(), edit.clone());
            async move {
                if index == 0 {
                    let reply = store.replay_with(old, false, &edit).await;
                    reply.expect("replay_with answers") == Replaying::Replayed
                } else {
                    let replies = store.insert(&[new]).await.expect("insert answers");
                    matches!(replies[0], Inserted::New { .. })
                }
            }
        })
        .await;

        assert_ne!(took_it[0], took_it[1], "exactly one takes the key");
        let [run] = &s.claim_all().await[..] else {
            panic!("one live job of the key")
        };
        assert_eq!(run.id, if took_it[0] { old.id } else { new.id });
        s.apply(done(run)).await;
    }
}
