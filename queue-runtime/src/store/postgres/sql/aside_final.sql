-- Moves jobs that cannot be read to the finished jobs, as dead letters, with every value as it
-- is, and keeps the history of their open attempts.
-- params: arrays with one element per job: $1 ids, $2 faults; $3 now or null
-- returns: a row per job that was moved (id, job_type, dedupe_key if another job may wait behind it)
-- locks: the jobs, in no order: a claim holds them already, and two rescues that wait for each other
--   are one deadlock, after which one of them begins anew
-- index: primary key
with
  clock (now) as materialized (
    select coalesce($3::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  aside (id, fault) as materialized (
    select id, fault
    from unnest($1::uuid[], $2::text[]) item (id, fault)
  ),
  gone as (
    delete from {q}.jobs j
    using aside
    where j.id = any ($1::uuid[])
      and j.id = aside.id
    returning
      j.id,
      j.job_type,
      j.queue,
      j.payload_schema,
      j.status,
      j.priority,
      j.attempts,
      j.max_attempts,
      j.crashes,
      j.snoozes,
      j.generation,
      j.run_at,
      j.cancel_requested_at,
      j.locked_by,
      j.lock_token,
      j.dedupe_key,
      j.dedupe_slot,
      j.dedupe_until_started,
      j.idempotency_key,
      j.cache_key,
      j.cache_version,
      j.deadline,
      j.trace_context,
      j.created_at,
      j.started_at,
      aside.fault,
      j.payload
  ),
  history as (
    insert into {q}.attempts (
      token,
      job_id,
      number,
      worker,
      started_at,
      finished_at,
      outcome,
      error
    )
    select
      lock_token,
      id,
      attempts,
      locked_by,
      started_at,
      (select now from clock),
      'undecodable',
      fault
    from gone
    where status = 'processing'
    on conflict (job_id, token) do nothing
  ),
  finished as (
    insert into {q}.finished_jobs (
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
    select
      id,
      job_type,
      queue,
      payload_schema,
      'dead_letter',
      priority,
      attempts,
      max_attempts,
      crashes,
      snoozes,
      generation,
      run_at,
      cancel_requested_at,
      null,
      null,
      lock_token,
      dedupe_key,
      dedupe_slot,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      deadline,
      'undecodable',
      'undecodable',
      trace_context,
      created_at,
      (select now from clock),
      started_at,
      (select now from clock),
      fault,
      payload
    from gone
    on conflict (id) do nothing
  )
select
  id,
  job_type,
  case when dedupe_slot = 0 then dedupe_key end
from gone
