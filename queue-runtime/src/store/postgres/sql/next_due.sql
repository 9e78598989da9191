-- Finds when the earliest job becomes due that a claim could take; reads one row per lane.
-- params: $1 queues, $2 types and $3 the highest payload schema of each, $4 from how many crashes
--   a job is a suspect, $5 largest number of suspects, $6 now or null
-- returns: one row (now, that time or null if none waits)
-- locks: nothing
-- index: jobs_due
with recursive
  asked (place, queue, job_type, highest) as materialized (
    select q.place, q.queue, t.job_type, t.highest
    from unnest($1::text[]) with ordinality q (queue, place)
    cross join unnest($2::text[], $3::bigint[]) t (job_type, highest)
  ),
  lanes (place, queue, job_type, highest, payload_schema, crashes, priority) as (
    select
      asked.place,
      asked.queue,
      asked.job_type,
      asked.highest,
      j.payload_schema,
      j.crashes,
      j.priority
    from asked
    cross join lateral (
      select payload_schema, crashes, priority
      from {q}.jobs
      where queue = asked.queue
        and job_type = asked.job_type
        and payload_schema <= asked.highest
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
      select payload_schema, crashes, priority
      from {q}.jobs
      where queue = l.queue
        and job_type = l.job_type
        and (payload_schema, crashes, priority) > (l.payload_schema, l.crashes, l.priority)
        and payload_schema <= l.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    ) j
  )
select
  coalesce($6::timestamptz, date_trunc('milliseconds', statement_timestamp())),
  (
    select min(j.run_at)
    from lanes l
    cross join lateral (
      select run_at
      from {q}.jobs
      where queue = l.queue
        and job_type = l.job_type
        and payload_schema = l.payload_schema
        and crashes = l.crashes
        and priority = l.priority
        and status = 'queued'
        and dedupe_slot = 0
      order by run_at
      limit 1
    ) j
    where l.crashes < $4 or $5 > 0
  )
