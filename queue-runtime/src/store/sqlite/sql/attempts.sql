-- Reads a job's attempts, oldest first.
-- params: ?1 id
-- returns: a row per attempt (the columns of an attempt)
-- locks: nothing
-- index: unique id of both tables, attempts_job
select
  token,
  number,
  worker,
  started_at,
  finished_at,
  outcome,
  error
from {q}attempts
where job_seq = (
  select seq
  from {q}jobs
  where id = ?1
  union all
  select seq
  from {q}finished_jobs
  where id = ?1
)
order by token
