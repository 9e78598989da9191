-- Counts the jobs in each state, in one snapshot.
-- params: none
-- returns: a row per state that has jobs (state, number)
-- locks: nothing
-- index: jobs_leases and finished_jobs_age; all live jobs are counted through the narrowest one
select 'queued', (select count(*) from {q}jobs)
  - (select count(*) from {q}jobs where status = 'processing')
union all
select 'processing', count(*)
from {q}jobs
where status = 'processing'
union all
select status, count(*)
from {q}finished_jobs
group by status
