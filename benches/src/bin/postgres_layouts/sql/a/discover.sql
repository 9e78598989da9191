-- Lists the lanes that have waiting jobs, each with the key of its first job.
-- params: $1 queues in the order to serve them, $2 types, $3 their highest payload schema
-- returns: a row per lane (place, queue, job_type, payload_schema, crashes, priority, run_at, id)
-- locks: nothing
-- index: a_jobs_due
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
  lanes (place, queue, job_type, highest, payload_schema, crashes, priority, run_at, id) as (
    select
      a.place,
      a.queue,
      a.job_type,
      a.highest,
      j.payload_schema,
      j.crashes,
      j.priority,
      j.run_at,
      j.id
    from asked a
    cross join lateral (
      select
        payload_schema,
        crashes,
        priority,
        run_at,
        id
      from postgres_layouts.a_jobs
      where queue = a.queue
        and job_type = a.job_type
        and payload_schema <= a.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority, run_at, id
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
      j.priority,
      j.run_at,
      j.id
    from lanes l
    cross join lateral (
      select
        payload_schema,
        crashes,
        priority,
        run_at,
        id
      from postgres_layouts.a_jobs
      where queue = l.queue
        and job_type = l.job_type
        and (payload_schema, crashes, priority) > (l.payload_schema, l.crashes, l.priority)
        and payload_schema <= l.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority, run_at, id
      limit 1
    ) j
  )
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
