-- Lists lease tokens that several attempts have.
-- params: none
-- returns: a row per token (token, number of attempts)
-- locks: nothing
-- index: none, walks over all jobs and attempts
select token, count(*)
from (
  select token
  from {q}.attempts
  union all
  select lock_token
  from {q}.jobs
  where status = 'processing'
    and lock_token is not null
  union all
  select lock_token
  from {q}.finished_jobs
  where done_by is not null
    and lock_token is not null
) given
group by token
having count(*) > 1
order by token
