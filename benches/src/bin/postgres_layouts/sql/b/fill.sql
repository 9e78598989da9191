-- Fills the table with jobs that are due, spread over the lanes; a tenth has a dedupe key.
-- params: $1 jobs, $2 lanes (1, or 4 priorities times so many types), $3 bytes of a payload
-- returns: nothing
-- locks: nothing else runs
-- index: none
with
  filled as (
    insert into postgres_layouts.b_jobs (
      id,
      job_type,
      queue,
      payload_schema,
      status,
      priority,
      max_attempts,
      run_at,
      dedupe_key,
      created_at,
      updated_at,
      payload
    )
    select
      ('00000000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid,
      'type_' || (i % $2::bigint / 4),
      'default',
      1,
      'queued',
      i % least($2::bigint, 4),
      5,
      now() - interval '1 hour' + i * interval '1 ms',
      case when i % 10 = 0 then 'key-' || i end,
      now(),
      now(),
      (
        select string_agg(md5((i * 10000 + part)::text), '')
        from generate_series(1, greatest($3::bigint / 32, 1)) part
      )
    from generate_series(1, $1::bigint) i
    returning
      id,
      job_type,
      dedupe_key
  )
insert into postgres_layouts.b_dedupe_keys (job_type, dedupe_key, dedupe_slot, job_id)
select
  job_type,
  dedupe_key,
  0,
  id
from filled
where dedupe_key is not null
