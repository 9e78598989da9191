-- Stores one job that is due at once; nothing is checked.
-- params: $1 id, $2 payload
-- returns: nothing
-- locks: the new row
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
values ($1, 'default', 0, 'queued', statement_timestamp(), 0, $2)
