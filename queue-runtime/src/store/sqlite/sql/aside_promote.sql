-- Lets the jobs that wait behind a dedupe key take the place of one that was set aside.
-- only: Postgres uses `settle_promote`, since it can read any row's key.
-- params: ?1 jobs as a JSON array of arrays (0 row number), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction, after the jobs were moved to the finished ones
-- index: jobs_dedupe
with
  free (job_type, dedupe_key) as materialized (
    select f.job_type, f.dedupe_key
    from json_each(?1) aside
    cross join {q}finished_jobs f
    where f.seq = aside.value ->> 0
      and f.dedupe_slot = 0
  )
update {q}jobs
set
  dedupe_slot = 0,
  updated_at = ?2
from free
where {q}jobs.job_type = free.job_type
  and {q}jobs.dedupe_key = free.dedupe_key
  and {q}jobs.dedupe_slot = 1
