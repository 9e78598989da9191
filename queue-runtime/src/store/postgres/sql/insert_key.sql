-- Binds idempotency keys to jobs, in place of what expired keys said before. A key without an end is
-- over once its window has passed and its job is not live.
--
-- The look-up has a limit: with `exists`, Postgres 13 keeps a plan at hand that reads all jobs.
-- params: arrays with one element per key: $1 job types, $2 idempotency keys, $3 job ids,
--   $4 fingerprints, $5 windows in ms, $6 states of jobs that are final already or null;
--   $7 now or null
-- returns: nothing; a key that somebody bound meanwhile is left out, so fewer rows are affected
-- locks: the rows of the keys, in the order of the arrays
-- index: primary key
insert into {q}.idempotency_keys as k (
  job_type,
  idempotency_key,
  job_id,
  fingerprint,
  created_at,
  window_ms,
  expires_at,
  final_state
)
select
  asked.job_type,
  asked.idempotency_key,
  asked.job_id,
  asked.fingerprint,
  clock.now,
  asked.window_ms,
  case when asked.final_state is not null then {q}.later(clock.now, asked.window_ms) end,
  asked.final_state
from (
  select coalesce($7::timestamptz, date_trunc('milliseconds', statement_timestamp())) as now
) clock
cross join unnest(
  $1::text[],
  $2::text[],
  $3::uuid[],
  $4::text[],
  $5::bigint[],
  $6::text[]
) asked (job_type, idempotency_key, job_id, fingerprint, window_ms, final_state)
on conflict (job_type, idempotency_key) do update
set
  job_id = excluded.job_id,
  fingerprint = excluded.fingerprint,
  created_at = excluded.created_at,
  window_ms = excluded.window_ms,
  expires_at = excluded.expires_at,
  final_state = excluded.final_state
where k.expires_at <= excluded.created_at
  or (
    k.expires_at is null
    and {q}.later(k.created_at, k.window_ms) <= excluded.created_at
    and (
      select true
      from {q}.jobs j
      where j.id = k.job_id
      limit 1
    ) is null
  )
