-- Lists the lanes that have waiting jobs, each with the key of its first job; a lane is one (queue,
-- job_type, payload_schema, crashes, priority). Jumps from lane to lane, so jobs of other types, or
-- of newer payload schemas, are never walked over. If there are too many, those are left out whose
-- jobs are not due, then those to run last. The others that are not due belong to the answer: what
-- is remembered of it has to tell of a job that becomes due meanwhile.
-- only: SQLite finds the lanes in the statement that claims.
-- params: $1 queues, $2 types and $3 the highest payload schema of each; $4 now or null
-- returns: a row per lane, those to run first in front (queue, job_type, payload_schema, crashes,
--   priority, run_at, id)
-- locks: nothing
-- index: jobs_due
with recursive
  asked (place, queue, job_type, highest) as materialized (
    select q.place, q.queue, t.job_type, t.highest
    from unnest($1::text[]) with ordinality q (queue, place)
    cross join unnest($2::text[], $3::bigint[]) t (job_type, highest)
  ),
  lanes (place, queue, job_type, highest, payload_schema, crashes, priority, run_at, id) as (
    select
      asked.place,
      asked.queue,
      asked.job_type,
      asked.highest,
      j.payload_schema,
      j.crashes,
      j.priority,
      j.run_at,
      j.id
    from asked
    cross join lateral (
      select payload_schema, crashes, priority, run_at, id
      from {q}.jobs
      where queue = asked.queue
        and job_type = asked.job_type
        and payload_schema <= asked.highest
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
      select payload_schema, crashes, priority, run_at, id
      from {q}.jobs
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
  queue,
  job_type,
  payload_schema,
  crashes,
  priority,
  run_at,
  id
from lanes
order by
  run_at > coalesce($4::timestamptz, date_trunc('milliseconds', statement_timestamp())),
  place,
  priority desc
limit 2000
