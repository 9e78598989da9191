-- Inserts waiting jobs in order; leaves out those whose id is stored already.
-- params: ?1 jobs as a JSON array of arrays (0 id, 1 job_type, 2 queue, 3 payload_schema,
--   4 priority, 5 max_attempts, 6 due after ms, 7 due at ms, 8 deadline after ms,
--   9 dedupe_until_started, 10 idempotency_key, 11 cache_key, 12 cache_version,
--   13 trace_context, 14 payload, 15 dedupe_key, 16 dedupe_slot),
--   ?2 now in ms or null
-- returns: nothing
-- locks: runs inside the writing transaction, so nothing else writes meanwhile
-- index: unique id of both tables
insert into {q}jobs (
  id,
  job_type,
  queue,
  payload_schema,
  status,
  priority,
  max_attempts,
  run_at,
  dedupe_key,
  dedupe_slot,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  trace_context,
  created_at,
  updated_at,
  payload
)
with
  clock (now) as materialized (
    select coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  ),
  batch (item) as materialized (
    select value
    from json_each(?1)
  )
select
  item ->> 0,
  item ->> 1,
  item ->> 2,
  item ->> 3,
  'queued',
  item ->> 4,
  item ->> 5,
  max(
    coalesce(item ->> 7, now),
    now + min(coalesce(item ->> 6, 0), 9223372036854775807 - now)
  ),
  item ->> 15,
  item ->> 16,
  item ->> 9,
  item ->> 10,
  item ->> 11,
  item ->> 12,
  now + min(item ->> 8, 9223372036854775807 - now),
  item ->> 13,
  now,
  now,
  item ->> 14
from clock
cross join batch
where not exists (
  select 1
  from {q}finished_jobs f
  where f.id = item ->> 0
)
on conflict (id) do nothing
