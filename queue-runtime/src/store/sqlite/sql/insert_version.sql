-- Raises the newest known version of cached things; never lowers one. An announcement by a job
-- whose id is stored already counts for nothing, so this runs before the job is inserted.
-- params: ?1 announcements as a JSON array of arrays (0 cache_key, 1 version, 2 id
--   of a job that may be stored, or null if it is known not to be)
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key, unique id of both job tables
insert into {q}versions (
  cache_key,
  version
)
select
  value ->> 0,
  value ->> 1
from json_each(?1)
where not exists (
    select 1
    from {q}jobs j
    where j.id = value ->> 2
  )
  and not exists (
    select 1
    from {q}finished_jobs f
    where f.id = value ->> 2
  )
on conflict (cache_key) do update
set version = max(version, excluded.version)
