-- Raises the newest known version of cached things; never lowers one.
-- params: ?1 announcements as a JSON array of arrays (0 cache_key, 1 version)
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
insert into {q}versions (
  cache_key,
  version
)
select
  value ->> 0,
  value ->> 1
from json_each(?1)
where true
on conflict (cache_key) do update
set version = max(version, excluded.version)
