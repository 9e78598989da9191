-- Reads a job in any state.
-- params: $1 id
-- returns: at most one row (the columns of a record)
-- locks: nothing
-- index: primary keys of both tables
select
  id,
  job_type,
  queue,
  payload,
  payload_schema,
  status,
  priority,
  attempts,
  max_attempts,
  crashes,
  snoozes,
  generation,
  run_at,
  cancel_requested_at,
  locked_until,
  locked_by,
  lock_token,
  dedupe_key,
  dedupe_slot,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  last_outcome,
  dead_reason,
  last_error,
  trace_context,
  created_at,
  updated_at,
  started_at,
  finished_at
from {q}.jobs
where id = $1
union all
select
  id,
  job_type,
  queue,
  payload,
  payload_schema,
  status,
  priority,
  attempts,
  max_attempts,
  crashes,
  snoozes,
  generation,
  run_at,
  cancel_requested_at,
  locked_until,
  locked_by,
  lock_token,
  dedupe_key,
  dedupe_slot,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  last_outcome,
  dead_reason,
  last_error,
  trace_context,
  created_at,
  updated_at,
  started_at,
  finished_at
from {q}.finished_jobs
where id = $1
