-- Lists jobs of a type, queue and payload schema that may still have to be decoded, in the order of
-- their ids: live jobs and dead letters. Walks over the live jobs behind the place, and over the dead
-- letters: a plus keeps SQLite from walking over all final jobs by their ids instead.
-- params: ?1 job_type, ?2 queue, ?3 payload_schema, ?4 id of the place where the page before
--   ended (null for the first page), ?5 largest number of jobs
-- returns: a row per job (the columns of a record)
-- locks: nothing
-- index: unique id of the live jobs, finished_jobs_age
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
from {q}jobs
where seq in (
  select seq
  from {q}jobs
  where job_type = ?1
    and queue = ?2
    and payload_schema = ?3
    and id > coalesce(?4, '')
  order by id
  limit cast(?5 as integer)
)
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
from {q}finished_jobs
where seq in (
  select seq
  from {q}finished_jobs
  where status = 'dead_letter'
    and job_type = ?1
    and queue = ?2
    and payload_schema = ?3
    and +id > coalesce(?4, '')
  order by +id
  limit cast(?5 as integer)
)
order by id
limit cast(?5 as integer)
