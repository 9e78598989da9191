-- Looks a job up in both tables, for an action on it.
-- params: $1 id
-- returns: at most one row (state, job_type, dedupe_key, attempts, crashes, snoozes);
--   none also if the job became final while this waited for it, so the caller looks twice
-- locks: the live job
-- index: primary keys of both tables
with
  live as materialized (
    select
      status,
      job_type,
      dedupe_key,
      attempts,
      crashes,
      snoozes
    from {q}.jobs
    where id = $1
    for update
  )
select
  status,
  job_type,
  dedupe_key,
  attempts,
  crashes,
  snoozes
from live
union all
select
  status,
  job_type,
  dedupe_key,
  attempts,
  crashes,
  snoozes
from {q}.finished_jobs
where id = $1
