-- Lists the jobs whose lease has run out, oldest first.
-- params: $1 largest number of jobs, $2 now or null
-- returns: a row per job (columns of a record)
-- locks: nothing; the rescue that follows is guarded by token and time again
-- index: b_leased_jobs_leases
select
  id,
  job_type,
  queue,
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
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  last_outcome,
  dead_reason,
  trace_context,
  created_at,
  updated_at,
  started_at,
  finished_at,
  last_error,
  payload
from postgres_layouts.b_leased_jobs
where locked_until <= coalesce($2::timestamptz, statement_timestamp())
  and status = 'processing'
order by locked_until, id
limit $1
