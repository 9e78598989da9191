-- Removes the attempts of removed jobs.
-- params: ?1 row numbers of the jobs as a JSON array
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: attempts_job
delete from {q}attempts
where job_seq in (
  select value
  from json_each(?1)
)
