-- Moves a finished job back to wait, due now, with its counters at zero.
-- params: $1 id, $2 now or null, $3 what to add to the generation
-- returns: a row if it was moved (1)
-- locks: the finished job; waits for a transaction that inserts its dedupe key
-- index: primary key
with
  gone as (
    delete from {q}.finished_jobs
    where id = $1
      and status in ('dead_letter', 'cancelled')
    returning
      id,
      job_type,
      queue,
      payload_schema,
      priority,
      max_attempts,
      generation,
      lock_token,
      dedupe_key,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      last_outcome,
      trace_context,
      created_at,
      started_at,
      last_error,
      payload
  )
insert into {q}.jobs (
  id,
  job_type,
  queue,
  payload_schema,
  status,
  priority,
  max_attempts,
  generation,
  run_at,
  lock_token,
  dedupe_key,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  last_outcome,
  trace_context,
  created_at,
  updated_at,
  started_at,
  last_error,
  payload
)
select
  id,
  job_type,
  queue,
  payload_schema,
  'queued',
  priority,
  max_attempts,
  generation + $3,
  coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp())),
  lock_token,
  dedupe_key,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  last_outcome,
  trace_context,
  created_at,
  coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp())),
  started_at,
  last_error,
  payload
from gone
returning 1
