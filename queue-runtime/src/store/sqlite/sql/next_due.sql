-- Finds when the earliest job becomes due that a claim could take; reads one row per lane.
-- params: ?1 queues as a JSON array, ?2 types as a JSON array of arrays (0 job_type, 1 highest
--   payload schema), ?3 from how many crashes a job is a suspect, ?4 largest number of suspects,
--   ?5 now in ms or null
-- returns: one row (milliseconds until then, zero if due already, or null if none waits)
-- locks: nothing
-- index: jobs_due
with recursive
  asked (place, queue, job_type, highest) as materialized (
    select q.key, q.value, t.value ->> 0, t.value ->> 1
    from json_each(?1) q
    cross join json_each(?2) t
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
    cross join {q}jobs j
    where j.seq = (
      select seq
      from {q}jobs
      where queue = a.queue
        and job_type = a.job_type
        and payload_schema <= a.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    )
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
    cross join {q}jobs j
    where j.seq = coalesce(
      (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema = l.payload_schema
          and crashes = l.crashes
          and priority > l.priority
          and status = 'queued'
          and dedupe_slot = 0
        order by priority
        limit 1
      ),
      (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema = l.payload_schema
          and crashes > l.crashes
          and status = 'queued'
          and dedupe_slot = 0
        order by crashes, priority
        limit 1
      ),
      (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema > l.payload_schema
          and payload_schema <= l.highest
          and status = 'queued'
          and dedupe_slot = 0
        order by payload_schema, crashes, priority
        limit 1
      )
    )
  )
select max(0, min(j.run_at) - coalesce(?5, cast(round(unixepoch('subsec') * 1000) as integer)))
from lanes l
cross join {q}jobs j
where (l.crashes < ?3 or ?4 > 0)
  and j.seq = (
  select seq
  from {q}jobs
  where queue = l.queue
    and job_type = l.job_type
    and payload_schema = l.payload_schema
    and crashes = l.crashes
    and priority = l.priority
    and status = 'queued'
    and dedupe_slot = 0
  order by run_at
  limit 1
)
