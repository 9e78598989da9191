-- Counts waiting jobs by type, but for the types that somebody knows.
-- params: $1 known types
-- returns: a row per other type, sorted (job_type, number)
-- locks: nothing
-- index: jobs_due, without touching the rows where they are old enough; jobs_behind
select job_type, sum(jobs)::bigint
from (
  select job_type, count(*) as jobs
  from {q}.jobs
  where status = 'queued'
    and dedupe_slot = 0
  group by job_type
  union all
  select job_type, count(*) as jobs
  from {q}.jobs
  where dedupe_slot = 1
  group by job_type
) waiting
where job_type <> all ($1::text[])
group by job_type
order by job_type
