-- Lists lease tokens that several jobs have as their newest one.
-- params: none
-- returns: a row per token (token, number of jobs)
-- locks: nothing
-- index: none, walks over all jobs
select lock_token, count(*)
from (
  select lock_token
  from {q}jobs
  where lock_token is not null
  union all
  select lock_token
  from {q}finished_jobs
  where lock_token is not null
) given
group by lock_token
having count(*) > 1
order by lock_token
