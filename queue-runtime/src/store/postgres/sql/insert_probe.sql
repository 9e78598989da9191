-- Looks up what an insert of jobs with keys would meet. What is met may change before the insert
-- is made: then a unique index refuses it, and it is decided anew.
--
-- The slot behind is asked for as `> 0`: for `= 1` the planner would take jobs_behind and walk all
-- jobs that wait behind any key.
-- A key of a live job does not run out. One that was bound to a job just as that ended stays
-- without an end, so it counts only as long as its window.
-- Each look-up has a limit, for the planner: what it may turn into a join or a hash, it plans to
-- read the whole table at each call if the tables were empty when it planned.
-- params: arrays with one element per job: $1 ids, $2 job types, $3 idempotency keys, $4 dedupe
--   keys held by live jobs, $5 dedupe keys held for a window, $6 payloads; $7 now or null
-- returns: one row per job in order (whether the id is stored; of the idempotency key: job,
--   fingerprint, state; of the window: job, state, whether the payload differs; of the live job
--   of the dedupe key: id, state, whether the payload differs; the same of the one behind it)
-- locks: nothing
-- index: primary keys of both key tables and both job tables, jobs_dedupe
select
  coalesce(
    (select true from {q}.jobs where id = asked.id limit 1),
    (select true from {q}.finished_jobs where id = asked.id limit 1),
    false
  ),
  k.job_id,
  k.fingerprint,
  coalesce(k_live.status, k_final.status, k.final_state),
  w.job_id,
  coalesce(w_live.status, w_final.status),
  coalesce(w_live.payload, w_final.payload) is distinct from asked.payload
    and coalesce(w_live.id, w_final.id) is not null,
  first.id,
  first.status,
  first.payload is distinct from asked.payload,
  second.id,
  second.status,
  second.payload is distinct from asked.payload
from (
  select coalesce($7::timestamptz, date_trunc('milliseconds', statement_timestamp())) as now
) clock
cross join unnest(
  $1::uuid[],
  $2::text[],
  $3::text[],
  $4::text[],
  $5::text[],
  $6::text[]
) with ordinality asked (id, job_type, idempotency_key, dedupe_key, window_key, payload, place)
left join lateral (
  select job_id, fingerprint, final_state
  from {q}.idempotency_keys
  where job_type = asked.job_type
    and idempotency_key = asked.idempotency_key
    and (
      expires_at > clock.now
      or expires_at is null
      and (
        {q}.later(created_at, window_ms) > clock.now
        or (select true from {q}.jobs where id = job_id limit 1)
      )
    )
  limit 1
) k on true
left join lateral (
  select status
  from {q}.jobs
  where id = k.job_id
  limit 1
) k_live on true
left join lateral (
  select status
  from {q}.finished_jobs
  where id = k.job_id
  limit 1
) k_final on true
left join lateral (
  select job_id
  from {q}.dedupe_windows
  where job_type = asked.job_type
    and dedupe_key = asked.window_key
    and expires_at > clock.now
  limit 1
) w on true
left join lateral (
  select id, status, payload
  from {q}.jobs
  where id = w.job_id
  limit 1
) w_live on true
left join lateral (
  select id, status, payload
  from {q}.finished_jobs
  where id = w.job_id
  limit 1
) w_final on true
left join lateral (
  select id, status, payload
  from {q}.jobs
  where job_type = asked.job_type
    and dedupe_key = asked.dedupe_key
    and dedupe_slot = 0
  limit 1
) first on true
left join lateral (
  select id, status, payload
  from {q}.jobs
  where job_type = asked.job_type
    and dedupe_key = asked.dedupe_key
    and dedupe_slot > 0
  limit 1
) second on true
order by asked.place
