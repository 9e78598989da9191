-- Adds history: jobs that are done.
-- params: $1 jobs
-- returns: nothing
-- locks: nothing else runs
-- index: none
insert into postgres_layouts.b_finished_jobs (
  id,
  job_type,
  queue,
  payload_schema,
  status,
  priority,
  attempts,
  max_attempts,
  run_at,
  created_at,
  updated_at,
  finished_at,
  payload
)
select
  ('00000000-0001-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid,
  'type_0',
  'default',
  1,
  'done',
  0,
  1,
  5,
  now(),
  now(),
  now(),
  now() - i * interval '1 ms',
  'null'
from generate_series(1, $1::bigint) i
