-- Reads a job's attempts, oldest first; the one that runs is read from the job.
-- params: $1 id
-- returns: a row per attempt (the columns of an attempt)
-- locks: nothing
-- index: attempts_pkey, primary key of jobs
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
order by token
