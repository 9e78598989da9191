-- Removes a finished job that waits again.
-- only: Postgres moves a job in one statement.
-- params: ?1 row number
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
delete from {q}finished_jobs
where seq = ?1
