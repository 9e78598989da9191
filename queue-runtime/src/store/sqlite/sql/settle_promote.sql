-- Lets the jobs that wait behind a dedupe key take the place of the one that ended.
-- params: ?1 keys as a JSON array of arrays (0 job_type, 1 dedupe_key), ?2 now in ms
-- returns: a row per promoted job (1)
-- locks: runs inside the writing transaction, after the ended jobs were removed
-- index: jobs_dedupe
update {q}jobs
set
  dedupe_slot = 0,
  updated_at = ?2
from (
  select value as item
  from json_each(?1)
) as free
where job_type = free.item ->> 0
  and dedupe_key = free.item ->> 1
  and dedupe_slot = 1
returning 1
