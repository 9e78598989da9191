-- Fills the table with jobs that are due.
-- params: $1 jobs, $2 lanes (ignored: this loop knows none), $3 bytes of a payload
-- returns: nothing
-- locks: nothing else runs
-- index: none
insert into postgres_layouts.raw_jobs (id, queue, priority, status, run_at, attempts, payload)
select
  ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid,
  'default',
  0,
  'queued',
  now() - interval '1 hour' + i * interval '1 ms',
  0,
  (
    select string_agg(md5((i * 10000 + part)::text), '')
    from generate_series(1, greatest($3::bigint / 32, 1)) part
  )
from generate_series(1, $1::bigint) i
where $2::bigint > 0
