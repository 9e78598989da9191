-- Counts waiting jobs by type, but for the types that somebody knows.
-- params: ?1 known types as a JSON array
-- returns: a row per other type, sorted (job_type, number)
-- locks: nothing
-- index: jobs_due and jobs_behind, without touching the rows
select job_type, sum(jobs)
from (
  select job_type, count(*) as jobs
  from {q}jobs
  where status = 'queued'
    and dedupe_slot = 0
  group by job_type
  union all
  select job_type, count(*) as jobs
  from {q}jobs
  where dedupe_slot = 1
  group by job_type
)
where job_type not in (select value from json_each(?1))
group by job_type
order by job_type
