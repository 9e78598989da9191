-- Removes jobs, whoever holds them, and keeps no history.
-- params: $1 ids
-- returns: nothing
-- locks: the removed rows
-- index: primary key
delete from postgres_speed.raw_jobs
where id = any ($1)
