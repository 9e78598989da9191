-- Removes jobs that were copied to the finished jobs; runs right after `settle_final`.
-- only: Postgres moves a job in one statement.
-- params: ?1 the jobs of `settle_final` as a JSON array of arrays (0 row number)
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
delete from {q}jobs
where seq in (
  select value ->> 0
  from json_each(?1)
)
