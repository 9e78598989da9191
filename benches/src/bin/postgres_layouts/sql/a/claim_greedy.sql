-- Takes jobs like `claim_full`, but locks in every lane as many as the whole claim may take.
-- params: $1 queues in the order to serve them, $2 types, $3 their highest payload schema,
--   $4 largest number of jobs, $5 how many more
--   to look at in each lane, $6 from how many crashes a job is a suspect, $7 largest number of
--   suspects, $8 worker, $9 lease in ms, $10 now or null
-- returns: a row per job, unordered (the columns of a claimed job, rows locked)
-- locks: up to the limit in each lane, also rows that are not taken
-- index: a_jobs_due, primary key
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
      from postgres_layouts.a_jobs
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
      from postgres_layouts.a_jobs
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
  due (place, priority, run_at, id) as materialized (
    select
      l.place,
      l.priority,
      j.run_at,
      j.id
    from (
      select
        place,
        queue,
        job_type,
        payload_schema,
        crashes,
        priority
      from lanes
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
        from postgres_layouts.a_jobs
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
        for update skip locked
      ) j
      limit $4::bigint
    ) j
    where l.crashes < $6::integer or $7::bigint > $5::bigint
  ),
  taken (id) as (
    select id
    from due
    order by place, priority desc, run_at, id
    limit $4::bigint
  )
update postgres_layouts.a_jobs
set
  status = 'processing',
  attempts = attempts + 1,
  locked_until = coalesce($10::timestamptz, statement_timestamp()) + $9::bigint * interval '1 ms',
  locked_by = $8::text,
  lock_token = nextval('postgres_layouts.a_tokens'),
  dedupe_key = case when not dedupe_until_started then dedupe_key end,
  updated_at = coalesce($10::timestamptz, statement_timestamp()),
  started_at = coalesce($10::timestamptz, statement_timestamp())
where id = any (array(select id from taken))
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
  lock_token,
  (select count(*) from due)
