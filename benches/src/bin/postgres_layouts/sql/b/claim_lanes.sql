-- Takes jobs from known lanes, each from a key on, and puts them under a lease.
-- params: $1 places of the lanes' queues, $2 queues, $3 types, $4 payload schemas, $5 crashes,
--   $6 priorities, $7 run_at and $8 id from which to look,
--   $9 largest number of jobs, $10 how many more
--   to look at in each lane, $11 from how many crashes a job is a suspect, $12 largest number of
--   suspects, $13 worker, $14 lease in ms, $15 now or null
-- returns: a row per job, unordered (the columns of a claimed job)
-- locks: the taken rows, one by one in claim order; skips rows that others hold
-- index: b_jobs_due, primary key
with
  lanes (place, queue, job_type, payload_schema, crashes, priority, run_at, id) as materialized (
    select
      place,
      queue,
      job_type,
      payload_schema,
      crashes,
      priority,
      run_at,
      id
    from unnest(
      $1::bigint[],
      $2::text[],
      $3::text[],
      $4::integer[],
      $5::integer[],
      $6::smallint[],
      $7::timestamptz[],
      $8::uuid[]
    ) as l (place, queue, job_type, payload_schema, crashes, priority, run_at, id)
  ),
  due (place, priority, run_at, id, is_suspect, suspects) as (
    select
      l.place,
      l.priority,
      j.run_at,
      j.id,
      l.crashes >= $11::integer,
      count(*) filter (where l.crashes >= $11::integer) over (
        order by l.place, l.priority desc, j.run_at, j.id
        rows unbounded preceding
      )
    from (
      select
        place,
        queue,
        job_type,
        payload_schema,
        crashes,
        priority,
        run_at,
        id
      from lanes
      order by place, priority desc
      limit 1000
    ) l
    cross join lateral (
      select
        run_at,
        id
      from (
        select
          run_at,
          id
        from postgres_layouts.b_jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema = l.payload_schema
          and crashes = l.crashes
          and priority = l.priority
          and (run_at, id) >= (l.run_at, l.id)
          and run_at <= coalesce($15::timestamptz, statement_timestamp())
          and status = 'queued'
          and dedupe_slot = 0
        order by run_at, id
        limit 1000
      ) j
      limit case when l.crashes < $11::integer then $9::bigint + $10::bigint else $12::bigint end
    ) j
  ),
  taken (id) as (
    select j.id
    from (
      select id
      from due
      where not is_suspect or suspects <= $12::bigint
      order by place, priority desc, run_at, id
      limit 2000
    ) c
    cross join lateral (
      select id
      from postgres_layouts.b_jobs
      where id = c.id
        and locked_until is null
        and dedupe_slot = 0
      limit 1
      for update skip locked
    ) j
    limit $9::bigint
  ),
  moved as (
    delete from postgres_layouts.b_jobs
    where id = any (array(select id from taken))
    returning
      id,
      job_type,
      queue,
      payload_schema,
      status,
      priority,
      attempts,
      max_attempts,
      crashes,
      snoozes,
      generation,
      run_at,
      cancel_requested_at,
      locked_until,
      locked_by,
      lock_token,
      dedupe_key,
      dedupe_slot,
      dedupe_until_started,
      idempotency_key,
      cache_key,
      cache_version,
      deadline,
      last_outcome,
      dead_reason,
      trace_context,
      created_at,
      updated_at,
      started_at,
      finished_at,
      last_error,
      payload
  )
insert into postgres_layouts.b_leased_jobs (
  id,
  job_type,
  queue,
  payload_schema,
  status,
  priority,
  attempts,
  max_attempts,
  crashes,
  snoozes,
  generation,
  run_at,
  cancel_requested_at,
  locked_until,
  locked_by,
  lock_token,
  dedupe_key,
  dedupe_slot,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  last_outcome,
  dead_reason,
  trace_context,
  created_at,
  updated_at,
  started_at,
  finished_at,
  last_error,
  payload
)
select
  id,
  job_type,
  queue,
  payload_schema,
  'processing',
  priority,
  attempts + 1,
  max_attempts,
  crashes,
  snoozes,
  generation,
  run_at,
  cancel_requested_at,
  coalesce($15::timestamptz, statement_timestamp()) + $14::bigint * interval '1 ms',
  $13::text,
  nextval('postgres_layouts.b_tokens'),
  dedupe_key,
  dedupe_slot,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  last_outcome,
  dead_reason,
  trace_context,
  created_at,
  coalesce($15::timestamptz, statement_timestamp()),
  coalesce($15::timestamptz, statement_timestamp()),
  finished_at,
  last_error,
  payload
from moved
returning
  id,
  job_type,
  queue,
  payload,
  payload_schema,
  attempts,
  max_attempts,
  crashes,
  snoozes,
  generation,
  run_at,
  priority,
  cancel_requested_at,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  trace_context,
  created_at,
  lock_token
