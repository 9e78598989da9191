-- Holds live jobs that newcomers rely on, until those are committed. A settlement that ended one
-- earlier would leave the newcomer behind it waiting for ever; a claim that took one earlier would
-- run it without what the caller's transaction has written.
-- only: SQLite has one writer at a time, so nothing can end in between.
-- params: $1 ids of the jobs that newcomers wait behind, $2 ids of the waiting jobs that run in
--   place of newcomers
-- returns: a row per job of $1 that is still live in slot 0, and of $2 that still waits (1)
-- locks: the jobs against being claimed and ended, not against heartbeats; in the order of their
--   ids
-- index: primary key
select 1
from {q}.jobs
where id = any ($1::uuid[] || $2::uuid[])
  and (
    dedupe_slot = 0 and id = any ($1::uuid[])
    or locked_until is null and id = any ($2::uuid[])
  )
order by id
for key share
