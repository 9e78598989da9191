-- Removes jobs that were copied to the finished jobs.
-- params: ?1 row numbers as a JSON array
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
delete from {q}jobs
where seq in (
  select value
  from json_each(?1)
)
