-- Lists the jobs of a final state, the one that became final last first.
-- params: $1 state, $2 finished_at and $3 id of the place where the page before ended (null for
--   the first page), $4 largest number of jobs
-- returns: a row per job (the columns of a record)
-- locks: nothing
-- index: finished_jobs_age
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
where status = $1
  and (finished_at, id) < (
    coalesce($2::timestamptz, 'infinity'),
    coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
  )
order by finished_at desc, id desc
limit $4
