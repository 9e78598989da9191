-- Ends the open attempts of jobs that are set aside.
-- only: Postgres moves a job and ends its attempt in one statement.
-- params: ?1 jobs as a JSON array of arrays (0 row number, 1 fault), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary keys of jobs and attempts
with
  ended (token, fault) as materialized (
    select j.lock_token, aside.value ->> 1
    from json_each(?1) aside
    cross join {q}jobs j
    where j.seq = aside.value ->> 0
      and j.status = 'processing'
  )
update {q}attempts
set
  finished_at = ?2,
  outcome = 'undecodable',
  error = ended.fault
from ended
where {q}attempts.token = ended.token
  and finished_at is null
