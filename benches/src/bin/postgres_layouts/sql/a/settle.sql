-- Moves jobs that became final to the finished jobs, with the row of their last attempt.
-- params: $1 ids, $2 lease tokens, $3 outcomes, $4 errors or nulls, $5 now or null
-- returns: a row per settlement that was applied (id); the others are stale
-- locks: the settled rows; a row whose token differs is not touched
-- index: primary key
with
  batch (id, token, outcome, error, at) as (
    select
      id,
      token,
      outcome,
      error,
      coalesce($5::timestamptz, statement_timestamp())
    from unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[]) as s (id, token, outcome, error)
    order by id
  ),
  gone as materialized (
    select
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
      j.locked_until,
      j.locked_by,
      j.lock_token,
      j.dedupe_key,
      j.dedupe_slot,
      j.dedupe_until_started,
      j.idempotency_key,
      j.cache_key,
      j.cache_version,
      j.deadline,
      j.last_outcome,
      j.dead_reason,
      j.trace_context,
      j.created_at,
      j.updated_at,
      j.started_at,
      j.finished_at,
      j.last_error,
      j.payload,
      b.outcome,
      b.error,
      b.at
    from batch b
    cross join lateral (
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
      from postgres_layouts.a_jobs
      where id = b.id
        and lock_token = b.token
        and status = 'processing'
      limit 1
      for update
    ) j
  ),
  removed as (
    delete from postgres_layouts.a_jobs
    where id = any (array(select id from gone))
  ),
  kept as (
    insert into postgres_layouts.a_finished_jobs (
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
      'done',
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
      dead_reason,
      trace_context,
      created_at,
      at,
      started_at,
      at,
      coalesce(error, last_error),
      payload
    from gone
  ),
  history as (
    insert into postgres_layouts.a_attempts (
      job_id,
      token,
      number,
      worker,
      started_at,
      finished_at,
      outcome,
      error
    )
    select
      id,
      lock_token,
      attempts,
      locked_by,
      started_at,
      at,
      outcome,
      error
    from gone
  )
select id
from gone
