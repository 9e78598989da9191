-- Moves jobs that become final to the finished jobs, and keeps the history of the attempts that
-- ended. Leaves out a job whose token is not the current one; without a token, one that does not
-- wait any more.
-- params: arrays with one element per job: $1 ids, $2 lease tokens or null for waiting jobs,
--   $3 outcomes, $4 errors, $5 attempts, $6 crashes, $7 snoozes, $8 final states,
--   $9 dead-letter reasons, $10 whether somebody must have asked to call the job off;
--   $11 now or null
-- returns: a row per job that is final now (id, lease token, job_type, dedupe_key if another job may
--   wait behind it, whether idempotency keys are bound to it)
-- locks: the jobs, in the order of their ids
-- index: primary key, idempotency_keys_job
with
  clock (now) as materialized (
    select coalesce($11::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  ended (
    id,
    token,
    outcome,
    error,
    attempts,
    crashes,
    snoozes,
    state,
    reason,
    only_if_cancelled
  ) as (
    select
      id,
      token,
      outcome,
      error,
      attempts,
      crashes,
      snoozes,
      state,
      reason,
      only_if_cancelled
    from unnest(
      $1::uuid[],
      $2::bigint[],
      $3::text[],
      $4::text[],
      $5::bigint[],
      $6::bigint[],
      $7::bigint[],
      $8::text[],
      $9::text[],
      $10::boolean[]
    ) item (
      id,
      token,
      outcome,
      error,
      attempts,
      crashes,
      snoozes,
      state,
      reason,
      only_if_cancelled
    )
    order by id
    limit 10000
  ),
  gone as materialized (
    select
      j.id,
      j.job_type,
      j.queue,
      j.payload_schema,
      j.priority,
      j.max_attempts,
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
      j.payload,
      j.attempts as number,
      coalesce(ended.error, j.last_error) as last_error,
      ended.token,
      ended.state,
      ended.reason,
      ended.outcome,
      ended.error,
      ended.attempts,
      ended.crashes,
      ended.snoozes
    from ended
    cross join lateral (
      select
        id,
        job_type,
        queue,
        payload_schema,
        priority,
        max_attempts,
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
        payload,
        attempts,
        last_error
      from {q}.jobs
      where id = ended.id
        and (
          lock_token = ended.token and locked_by is not null
          or ended.token is null and locked_by is null
        )
        and (cancel_requested_at is not null or not ended.only_if_cancelled)
      limit 1
      for update
    ) j
  ),
  removed as (
    delete from {q}.jobs
    where id = any (array(select id from gone))
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
      token,
      id,
      number,
      locked_by,
      started_at,
      (select now from clock),
      outcome,
      error
    from gone
    where token is not null
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
      state,
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
      outcome,
      reason,
      trace_context,
      created_at,
      (select now from clock),
      started_at,
      (select now from clock),
      last_error,
      payload
    from gone
  )
select
  id,
  token,
  job_type,
  case when dedupe_slot = 0 then dedupe_key end,
  (
    select true
    from {q}.idempotency_keys
    where job_id = gone.id
    limit 1
  ) is not null
from gone
