-- Removes the attempts of removed jobs.
-- params: $1 ids of the jobs
-- returns: nothing
-- locks: the removed attempts
-- index: attempts_pkey
delete from {q}.attempts
where job_id = any ($1::uuid[])
