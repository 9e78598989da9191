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
  back (
    id,
    token,
    outcome,
    error,
    attempts,
    crashes,
    snoozes,
    delay,
    number,
    worker,
    started_at
  ) as materialized (
    select
      item.id,
      item.token,
      item.outcome,
      item.error,
      item.attempts,
      item.crashes,
      item.snoozes,
      item.delay,
      j.attempts,
      j.locked_by,
      j.started_at
    from (
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
      ) asked (id, token, outcome, error, attempts, crashes, snoozes, delay)
      order by id
      limit 10000
    ) item
    cross join lateral (
      select attempts, locked_by, started_at
      from {q}.jobs
      where id = item.id
        and lock_token = item.token
        and locked_by is not null
        and cancel_requested_at is null
      limit 1
      for update
    ) j
  ),
  waiting as (
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
    where j.id = any (array(select id from back))
      and j.id = back.id
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
      worker,
      started_at,
      (select now from clock),
      outcome,
      error
    from back
  )
select id, token
from back
