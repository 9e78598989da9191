-- Stores jobs that are due at once; nothing is checked.
-- params: $1 ids, $2 payloads
-- returns: nothing
-- locks: the new rows
-- index: primary key
insert into postgres_speed.raw_jobs (
  id,
  queue,
  priority,
  status,
  run_at,
  attempts,
  payload
)
select
  item.id,
  'default',
  0,
  'queued',
  statement_timestamp(),
  0,
  item.payload
from unnest($1::uuid[], $2::text[]) item (id, payload)
