-- Holds the live jobs that newcomers are about to wait behind, until those are committed: a
-- settlement that ended one of them earlier would leave its newcomer waiting for ever.
-- only: SQLite has one writer at a time, so nothing can end in between.
-- params: $1 ids of the live jobs
-- returns: a row per job that is still live in slot 0 (1)
-- locks: the jobs against being ended, not against heartbeats; in the order of their ids
-- index: primary key
select 1
from {q}.jobs
where id = any($1::uuid[])
  and dedupe_slot = 0
order by id
for key share
