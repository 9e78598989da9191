-- Binds idempotency keys to jobs, in place of what the keys said before.
-- params: ?1 keys as a JSON array of arrays (0 job_type, 1 idempotency_key, 2 job id,
--   3 fingerprint, 4 window in ms, 5 state of a job that is final already or null),
--   ?2 now in ms or null
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
insert into {q}idempotency_keys (
  job_type,
  idempotency_key,
  job_id,
  fingerprint,
  created_at,
  window_ms,
  expires_at,
  final_state
)
with
  clock (now) as materialized (
    select coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  )
select
  value ->> 0,
  value ->> 1,
  value ->> 2,
  value ->> 3,
  now,
  value ->> 4,
  case
    when value ->> 5 is not null then now + min(value ->> 4, 9223372036854775807 - now)
  end,
  value ->> 5
from clock
cross join json_each(?1)
where true
on conflict (job_type, idempotency_key) do update
set
  job_id = excluded.job_id,
  fingerprint = excluded.fingerprint,
  created_at = excluded.created_at,
  window_ms = excluded.window_ms,
  expires_at = excluded.expires_at,
  final_state = excluded.final_state
