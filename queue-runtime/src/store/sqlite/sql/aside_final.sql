-- Copies jobs that cannot be read to the finished jobs, as dead letters, with every value as it
-- is; `settle_remove` takes them away. A job whose id is finished already is not copied.
-- params: ?1 jobs as a JSON array of arrays (0 row number, 1 fault), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
insert into {q}finished_jobs (
  seq,
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
)
with
  batch (item) as materialized (
    select value
    from json_each(?1)
  )
select
  j.seq,
  j.id,
  j.job_type,
  j.queue,
  j.payload_schema,
  'dead_letter',
  j.priority,
  j.attempts,
  j.max_attempts,
  j.crashes,
  j.snoozes,
  j.generation,
  j.run_at,
  j.cancel_requested_at,
  null,
  null,
  j.lock_token,
  j.dedupe_key,
  j.dedupe_slot,
  j.dedupe_until_started,
  j.idempotency_key,
  j.cache_key,
  j.cache_version,
  j.deadline,
  'undecodable',
  'undecodable',
  j.trace_context,
  j.created_at,
  ?2,
  j.started_at,
  ?2,
  item ->> 1,
  j.payload
from batch
cross join {q}jobs j
where j.seq = item ->> 0
on conflict do nothing
