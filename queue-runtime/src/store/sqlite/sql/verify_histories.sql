-- Reads the history of every job: the job first, then its attempts by their tokens.
-- params: none
-- returns: a row per job and per attempt, those of one job together (row number of the job; 0 live
--   job, 1 final job, 2 attempt; id; state; token; attempts or number of the attempt; crashes;
--   snoozes; whether the attempt is open; outcome; worker)
-- locks: nothing
-- index: none, walks over all jobs and attempts in the order of the jobs
select
  seq as job,
  0 as place,
  id,
  status,
  lock_token as token,
  attempts as number,
  crashes,
  snoozes,
  0 as is_open,
  null as outcome,
  null as worker
from {q}jobs
union all
select
  seq,
  1,
  id,
  status,
  lock_token,
  attempts,
  crashes,
  snoozes,
  0,
  null,
  null
from {q}finished_jobs
union all
select
  job_seq,
  2,
  null,
  null,
  token,
  number,
  0,
  0,
  finished_at is null,
  outcome,
  worker
from {q}attempts
order by job, place, token
