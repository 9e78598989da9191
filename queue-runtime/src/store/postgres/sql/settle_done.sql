-- Moves jobs that succeeded to the finished jobs. A success is most of what is settled, so it has a
-- statement that writes one row per job: the attempt that ends is kept in the finished job's own
-- row. Attempts and snoozes stay as the claim left them; a success ends the row of crashes, so those
-- become 0. Leaves out a job whose token is not the current one, or whose attempts or snoozes differ
-- from those given; `settle_final.sql` is asked about those.
--
-- `case` keeps the planner from making a join of the look-up, which it would do by reading all jobs.
-- params: arrays with one element per job: $1 ids, $2 lease tokens, $3 attempts, $4 snoozes;
--   $5 now or null
-- returns: a row per job that is final now (id, lease token, job_type, dedupe_key if another job may
--   wait behind it, whether idempotency keys are bound to it)
-- locks: the jobs, in no promised order: two settlements share a job only if one of them is late, and
--   a deadlock is begun anew
-- index: primary key, idempotency_keys_job
-- only: SQLite writes a history row at little cost, and one statement for all ends.
with
  clock (now) as materialized (
    select coalesce($5::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  gone as (
    delete from {q}.jobs
    where id = any ($1::uuid[])
      and case
        when locked_by is not null then (id, lock_token, attempts, snoozes) in (
          select id, token, attempts, snoozes
          from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[])
            done (id, token, attempts, snoozes)
        )
      end
    returning
      id,
      job_type,
      queue,
      payload_schema,
      priority,
      attempts,
      max_attempts,
      snoozes,
      generation,
      run_at,
      cancel_requested_at,
      locked_by,
      lock_token,
      dedupe_key,
      dedupe_slot,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      deadline,
      trace_context,
      created_at,
      started_at,
      last_error,
      payload
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
      lock_token,
      dedupe_key,
      dedupe_slot,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      deadline,
      last_outcome,
      trace_context,
      created_at,
      updated_at,
      started_at,
      finished_at,
      done_by,
      last_error,
      payload
    )
    select
      id,
      job_type,
      queue,
      payload_schema,
      'done',
      priority,
      attempts,
      max_attempts,
      0,
      snoozes,
      generation,
      run_at,
      cancel_requested_at,
      lock_token,
      dedupe_key,
      dedupe_slot,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      deadline,
      'success',
      trace_context,
      created_at,
      (select now from clock),
      started_at,
      (select now from clock),
      locked_by,
      last_error,
      payload
    from gone
  )
select
  id,
  lock_token,
  job_type,
  case when dedupe_slot = 0 then dedupe_key end,
  (
    select true
    from {q}.idempotency_keys
    where job_id = gone.id
    limit 1
  ) is not null
from gone
