-- Reads the history of every job: the job first, then its attempts by their tokens. The attempt that
-- runs, and one whose success ended the job, are read from the job.
-- params: none
-- returns: a row per job and per attempt, those of one job together (id of the job; 0 live job,
--   1 final job, 2 attempt; state; token; attempts or number of the attempt; crashes; snoozes;
--   whether the attempt is open; outcome; worker, or null while it runs)
-- locks: nothing
-- index: none, walks over all jobs and attempts
select
  id as job,
  0 as place,
  status,
  lock_token as token,
  attempts as number,
  crashes,
  snoozes,
  false as is_open,
  null as outcome,
  null as worker
from {q}.jobs
union all
select
  id,
  1,
  status,
  lock_token,
  attempts,
  crashes,
  snoozes,
  false,
  null,
  null
from {q}.finished_jobs
union all
select
  job_id,
  2,
  null,
  token,
  number,
  0,
  0,
  finished_at is null,
  outcome,
  worker
from {q}.attempts
union all
select
  id,
  2,
  null,
  lock_token,
  attempts,
  0,
  0,
  true,
  null,
  null
from {q}.jobs
where status = 'processing'
  and lock_token is not null
union all
select
  id,
  2,
  null,
  lock_token,
  attempts,
  0,
  0,
  false,
  last_outcome,
  done_by
from {q}.finished_jobs
where done_by is not null
  and lock_token is not null
order by job, place, token
