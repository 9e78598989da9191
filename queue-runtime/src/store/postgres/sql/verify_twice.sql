-- Lists jobs that are live and final.
-- params: none
-- returns: a row per job (id)
-- locks: nothing
-- index: none, walks over all live jobs
select j.id
from {q}.jobs j
where exists (
  select 1
  from {q}.finished_jobs f
  where f.id = j.id
)
