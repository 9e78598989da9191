-- Counts the jobs in each state, in one snapshot.
-- params: none
-- returns: a row per state that has jobs (state, number)
-- locks: nothing
-- index: finished_jobs_age; live jobs are counted through their narrowest index
select status, count(*)
from {q}.jobs
group by status
union all
select status, count(*)
from {q}.finished_jobs
group by status
