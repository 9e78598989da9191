-- Reads a job's attempts, oldest first. The one that runs, and one whose success ended the job, are
-- read from the job.
-- params: $1 id
-- returns: a row per attempt (the columns of an attempt)
-- locks: nothing
-- index: attempts_pkey, primary keys of both tables
select
  token,
  number,
  worker,
  started_at,
  finished_at,
  outcome,
  error
from {q}.attempts
where job_id = $1
union all
select
  lock_token,
  attempts,
  locked_by,
  started_at,
  null,
  null,
  null
from {q}.jobs
where id = $1
  and status = 'processing'
union all
select
  lock_token,
  attempts,
  done_by,
  started_at,
  finished_at,
  last_outcome,
  null
from {q}.finished_jobs
where id = $1
  and done_by is not null
order by token
