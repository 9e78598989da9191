-- Looks up what an insert of jobs with keys would meet. What is met may change before the insert
-- is made: then a unique index refuses it, and it is decided anew.
--
-- The slot behind is asked for as `> 0`: for `= 1` the planner would take jobs_behind and walk all
-- jobs that wait behind any key.
-- A key of a live job does not run out. One that was bound to a job just as that ended stays
-- without an end, so it counts only as long as its window.
-- params: arrays with one element per job: $1 ids, $2 job types, $3 idempotency keys, $4 dedupe
--   keys held by live jobs, $5 dedupe keys held for a window, $6 payloads; $7 now or null
-- returns: one row per job in order (whether the id is stored; of the idempotency key: job,
--   fingerprint, state; of the window: job, state, whether the payload differs; of the live job
--   of the dedupe key: id, state, whether the payload differs; the same of the one behind it)
-- locks: nothing
-- index: primary keys of both key tables and both job tables, jobs_dedupe
select
  exists (select 1 from {q}.jobs j where j.id = asked.id)
    or exists (select 1 from {q}.finished_jobs f where f.id = asked.id),
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
left join {q}.idempotency_keys k
  on k.job_type = asked.job_type
  and k.idempotency_key = asked.idempotency_key
  and (
    k.expires_at > clock.now
    or k.expires_at is null
    and (
      {q}.later(k.created_at, k.window_ms) > clock.now
      or exists (select 1 from {q}.jobs j where j.id = k.job_id)
    )
  )
left join {q}.jobs k_live
  on k_live.id = k.job_id
left join {q}.finished_jobs k_final
  on k_final.id = k.job_id
left join {q}.dedupe_windows w
  on w.job_type = asked.job_type
  and w.dedupe_key = asked.window_key
  and w.expires_at > clock.now
left join {q}.jobs w_live
  on w_live.id = w.job_id
left join {q}.finished_jobs w_final
  on w_final.id = w.job_id
left join {q}.jobs first
  on first.job_type = asked.job_type
  and first.dedupe_key = asked.dedupe_key
  and first.dedupe_slot = 0
left join {q}.jobs second
  on second.job_type = asked.job_type
  and second.dedupe_key = asked.dedupe_key
  and second.dedupe_slot > 0
order by asked.place
