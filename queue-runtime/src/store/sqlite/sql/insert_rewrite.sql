-- Gives waiting jobs the payload of newcomers that replace them.
-- params: ?1 newcomers as a JSON array of arrays (0 id of the waiting job, 1 payload_schema,
--   2 priority, 3 cache_key, 4 cache_version, 5 trace_context, 6 payload), ?2 now in ms or null
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: unique id
update {q}jobs
set
  payload_schema = newcomer.item ->> 1,
  priority = newcomer.item ->> 2,
  cache_key = newcomer.item ->> 3,
  cache_version = newcomer.item ->> 4,
  trace_context = newcomer.item ->> 5,
  updated_at = newcomer.now,
  payload = newcomer.item ->> 6
from (
  select value as item, coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer)) as now
  from json_each(?1)
) as newcomer
where {q}jobs.id = newcomer.item ->> 0
  and status = 'queued'
