-- Sends jobs back to wait, and keeps the history of the attempts that ended. Leaves out a job
-- whose token is not the current one, or that somebody has asked to call off.
-- params: arrays with one element per job: $1 ids, $2 lease tokens, $3 outcomes, $4 errors,
--   $5 attempts, $6 crashes, $7 snoozes, $8 delays in ms; $9 now or null
-- returns: a row per job that waits again (id, the lease token)
-- locks: the jobs, in the order of their ids
-- index: primary key
with
  clock (now) as materialized (
    select coalesce($9::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  back (id, token, outcome, error, attempts, crashes, snoozes, delay) as materialized (
    select
      id,
      token,
      outcome,
      error,
      attempts,
      crashes,
      snoozes,
      delay
    from unnest(
      $1::uuid[],
      $2::bigint[],
      $3::text[],
      $4::text[],
      $5::bigint[],
      $6::bigint[],
      $7::bigint[],
      $8::bigint[]
    ) item (id, token, outcome, error, attempts, crashes, snoozes, delay)
  ),
  waiting (id, token) as (
    update {q}.jobs j
    set
      status = 'queued',
      attempts = back.attempts,
      crashes = back.crashes,
      snoozes = back.snoozes,
      run_at = {q}.later((select now from clock), back.delay),
      locked_until = null,
      locked_by = null,
      last_outcome = back.outcome,
      updated_at = (select now from clock),
      last_error = coalesce(back.error, j.last_error)
    from back
    where j.id = any ($1::uuid[])
      and j.id = back.id
      and j.status = 'processing'
      and j.lock_token = back.token
      and j.cancel_requested_at is null
    returning j.id, j.lock_token
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
      before.lock_token,
      before.id,
      before.attempts,
      before.locked_by,
      before.started_at,
      (select now from clock),
      back.outcome,
      back.error
    from waiting
    -- As the job was before this statement: its attempt, worker and start do not change while
    -- its token stays.
    join {q}.jobs before
      on before.id = waiting.id
      and before.id = any ($1::uuid[])
    join back
      on back.id = waiting.id
  )
select id, token
from waiting
