-- Lists the jobs whose lease has run out, oldest first. Leaves out those that somebody holds: a
-- rescue would leave them alone, and many of them would hide the others.
-- params: $1 largest number of jobs, $2 now or null
-- returns: a row per job (the columns of a record)
-- locks: the jobs against being ended, skipping those that are locked; the rescue that follows is
--   guarded by token and time again
-- index: jobs_leases
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
where locked_until <= coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
order by locked_until, id
limit $1
for key share skip locked
