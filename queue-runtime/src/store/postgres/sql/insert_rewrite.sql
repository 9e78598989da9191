-- Gives waiting jobs the payload of newcomers that replace them.
-- params: arrays with one element per newcomer: $1 ids of the waiting jobs, $2 payload schemas,
--   $3 priorities, $4 cache keys, $5 cache versions, $6 trace contexts, $7 payloads;
--   $8 now or null
-- returns: nothing; a job that was claimed meanwhile is left out, so fewer rows are affected
-- locks: the rows of the waiting jobs
-- index: primary key
update {q}.jobs j
set
  payload_schema = newcomer.payload_schema,
  priority = newcomer.priority,
  cache_key = newcomer.cache_key,
  cache_version = newcomer.cache_version,
  trace_context = newcomer.trace_context,
  updated_at = coalesce($8::timestamptz, date_trunc('milliseconds', statement_timestamp())),
  payload = newcomer.payload
from unnest(
  $1::uuid[],
  $2::bigint[],
  $3::smallint[],
  $4::text[],
  $5::bigint[],
  $6::text[],
  $7::text[]
) newcomer (id, payload_schema, priority, cache_key, cache_version, trace_context, payload)
where j.id = any($1::uuid[])
  and j.id = newcomer.id
  and j.status = 'queued'
