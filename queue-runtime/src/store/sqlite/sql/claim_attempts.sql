-- Starts the history of the attempts that a claim begins.
-- only: Postgres keeps the attempt that runs in the job's own row.
-- params: ?1 row numbers of the jobs as a JSON array in claim order, ?2 newest lease token of
--   the store, ?3 worker, ?4 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key of jobs
insert into {q}attempts (
  token,
  job_seq,
  number,
  worker,
  started_at
)
select
  ?2 + 1 + taken.key,
  j.seq,
  j.attempts + 1,
  ?3,
  ?4
from json_each(?1) taken
cross join {q}jobs j
where j.seq = taken.value
