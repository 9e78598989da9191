-- Finds the live job that holds a dedupe key.
-- params: $1 job_type, $2 dedupe_key
-- returns: at most one row (id)
-- locks: nothing
-- index: jobs_dedupe
select id
from {q}.jobs
where job_type = $1
  and dedupe_key = $2
order by dedupe_slot
limit 1
