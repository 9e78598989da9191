-- Opens dedupe windows, in place of those that have passed.
-- params: ?1 windows as a JSON array of arrays (0 job_type, 1 dedupe_key, 2 job id, 3 window in
--   ms), ?2 now in ms or null
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
insert into {q}dedupe_windows (
  job_type,
  dedupe_key,
  job_id,
  expires_at
)
with
  clock (now) as materialized (
    select coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  )
select
  value ->> 0,
  value ->> 1,
  value ->> 2,
  now + min(value ->> 3, 9223372036854775807 - now)
from clock
cross join json_each(?1)
where true
on conflict (job_type, dedupe_key) do update
set
  job_id = excluded.job_id,
  expires_at = excluded.expires_at
