-- Chooses the due jobs that a claim takes. Jumps from lane to lane, a lane being one (queue,
-- job_type, payload_schema, crashes, priority), and reads at most the limit of each, so jobs of other
-- types, of newer payload schemas or of a later time are never walked over. The limit is cast,
-- because a bare parameter there makes SQLite compile the statement again at every call.
-- params: ?1 queues as a JSON array in the order to serve them, ?2 types as a JSON array of
--   arrays (0 job_type, 1 highest payload schema), ?3 largest number of jobs, ?4 from how many
--   crashes a job is a suspect, ?5 largest number of suspects, ?6 now in ms or null
-- returns: a row per job in the order to run them (row number, newest lease token of the store,
--   then the columns of a claimed job)
-- locks: nothing; runs inside the writing transaction that takes the jobs
-- index: jobs_due
with recursive
  clock (now) as materialized (
    select coalesce(?6, cast(round(unixepoch('subsec') * 1000) as integer))
  ),
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
  ),
  due (place, priority, run_at, id, seq, is_suspect) as materialized (
    select
      l.place,
      l.priority,
      j.run_at,
      j.id,
      j.seq,
      l.crashes >= ?4
    from lanes l
    cross join {q}jobs j
    where (l.crashes < ?4 or ?5 > 0)
      and j.seq in (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema = l.payload_schema
          and crashes = l.crashes
          and priority = l.priority
          and run_at <= (select now from clock)
          and status = 'queued'
          and dedupe_slot = 0
        order by run_at, id
        limit cast(?3 as integer)
      )
  ),
  counted (place, priority, run_at, id, seq, is_suspect, nth) as (
    select
      place,
      priority,
      run_at,
      id,
      seq,
      is_suspect,
      row_number() over (partition by is_suspect order by place, priority desc, run_at, id)
    from due
  ),
  taken (place, priority, run_at, id, seq) as materialized (
    select
      place,
      priority,
      run_at,
      id,
      seq
    from counted
    where not is_suspect or nth <= ?5
    order by place, priority desc, run_at, id
    limit cast(?3 as integer)
  )
select
  j.seq,
  (select seq from sqlite_sequence where name = '{q}attempts'),
  j.id,
  j.job_type,
  j.queue,
  j.payload,
  j.payload_schema,
  j.attempts,
  j.max_attempts,
  j.crashes,
  j.snoozes,
  j.generation,
  j.run_at,
  j.cancel_requested_at,
  j.idempotency_key,
  j.cache_key,
  j.cache_version,
  j.deadline,
  j.trace_context,
  j.created_at
from taken
cross join {q}jobs j
where j.seq = taken.seq
order by taken.place, taken.priority desc, taken.run_at, taken.id
