-- Finds the lanes, reads candidates without locks, locks them lazily, and puts them under a lease.
-- params: $1 queues in the order to serve them, $2 types, $3 their highest payload schema,
--   $4 largest number of jobs, $5 how many more
--   to look at in each lane, $6 from how many crashes a job is a suspect, $7 largest number of
--   suspects, $8 worker, $9 lease in ms, $10 now or null
-- returns: a row per job, unordered (the columns of a claimed job)
-- locks: the taken rows, one by one in claim order; skips rows that others hold
-- index: b_jobs_due, primary key
with recursive
  asked (place, queue, job_type, highest) as materialized (
    select
      q.place,
      q.queue,
      t.job_type,
      t.highest
    from unnest($1::text[]) with ordinality as q (queue, place)
    cross join unnest($2::text[], $3::integer[]) as t (job_type, highest)
  ),
  lanes (place, queue, job_type, highest, payload_schema, crashes, priority) as (
    select
      a.place,
      a.queue,
      a.job_type,
      a.highest,
      j.payload_schema,
      j.crashes,
      j.priority
    from asked a
    cross join lateral (
      select
        payload_schema,
        crashes,
        priority
      from postgres_layouts.b_jobs
      where queue = a.queue
        and job_type = a.job_type
        and payload_schema <= a.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    ) j
    union all
    select
      l.place,
      l.queue,
      l.job_type,
      l.highest,
      j.payload_schema,
      j.crashes,
      j.priority
    from lanes l
    cross join lateral (
      select
        payload_schema,
        crashes,
        priority
      from postgres_layouts.b_jobs
      where queue = l.queue
        and job_type = l.job_type
        and (payload_schema, crashes, priority) > (l.payload_schema, l.crashes, l.priority)
        and payload_schema <= l.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    ) j
  ),
  due (place, priority, run_at, id, is_suspect, suspects) as (
    select
      l.place,
      l.priority,
      j.run_at,
      j.id,
      l.crashes >= $6::integer,
      count(*) filter (where l.crashes >= $6::integer) over (
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
        priority
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
          and run_at <= coalesce($10::timestamptz, statement_timestamp())
          and status = 'queued'
          and dedupe_slot = 0
        order by run_at, id
        limit 1000
      ) j
      limit case when l.crashes < $6::integer then $4::bigint + $5::bigint else $7::bigint end
    ) j
  ),
  taken (id) as (
    select j.id
    from (
      select id
      from due
      where not is_suspect or suspects <= $7::bigint
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
    limit $4::bigint
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
  coalesce($10::timestamptz, statement_timestamp()) + $9::bigint * interval '1 ms',
  $8::text,
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
  coalesce($10::timestamptz, statement_timestamp()),
  coalesce($10::timestamptz, statement_timestamp()),
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
