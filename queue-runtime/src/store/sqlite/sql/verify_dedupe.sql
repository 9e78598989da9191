-- Lists dedupe keys that several live jobs hold or wait behind, or that a job waits behind and
-- nobody holds.
-- params: none
-- returns: a row per key (job_type, dedupe_key, number of jobs that hold it, number behind it)
-- locks: nothing
-- index: none, walks over the live jobs that have a key
select
  job_type,
  dedupe_key,
  count(*) filter (where dedupe_slot = 0),
  count(*) filter (where dedupe_slot = 1)
from {q}jobs
where dedupe_key is not null
group by job_type, dedupe_key
having count(*) filter (where dedupe_slot = 0) <> 1
  or count(*) filter (where dedupe_slot = 1) > 1
order by job_type, dedupe_key
