-- Looks a job up in both tables, for an action on it.
-- params: ?1 id
-- returns: at most one row (row number, state, job_type, dedupe_key, dedupe_slot, attempts,
--   crashes, snoozes)
-- locks: nothing
-- index: unique id of both tables
select
  seq,
  status,
  job_type,
  dedupe_key,
  dedupe_slot,
  attempts,
  crashes,
  snoozes
from {q}jobs
where id = ?1
union all
select
  seq,
  status,
  job_type,
  dedupe_key,
  dedupe_slot,
  attempts,
  crashes,
  snoozes
from {q}finished_jobs
where id = ?1
