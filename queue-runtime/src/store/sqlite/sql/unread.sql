-- Counts waiting jobs of some queues by type and payload schema, but for those that somebody reads.
-- Jumps from one type and schema to the next, so jobs that are read are never walked over. What is
-- read is taken off before the bound: the jobs of at most two thousand queues, types and schemas are
-- counted, and at most a thousand of each. Jobs that wait behind their dedupe key are left out: the
-- job before them is of the same type, and they are counted when it is their turn.
--
-- The next one is looked for column by column: SQLite goes by the first column alone where several
-- are compared at once, and walks over the rest.
-- params: ?1 queues as a JSON array, ?2 what is read, as a JSON array of arrays (0 job_type,
--   1 highest payload schema)
-- returns: a row per other type and schema, sorted (job_type, payload_schema, number)
-- locks: nothing
-- index: jobs_due
with recursive
  lanes (queue, job_type, payload_schema) as (
    select j.queue, j.job_type, j.payload_schema
    from (select distinct value as queue from json_each(?1)) served
    cross join {q}jobs j
    where j.seq = (
      select seq
      from {q}jobs
      where queue = served.queue
        and status = 'queued'
        and dedupe_slot = 0
      order by job_type, payload_schema
      limit 1
    )
    union all
    select j.queue, j.job_type, j.payload_schema
    from lanes l
    cross join {q}jobs j
    where j.seq = coalesce(
      (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema > l.payload_schema
          and status = 'queued'
          and dedupe_slot = 0
        order by payload_schema
        limit 1
      ),
      (
        select seq
        from {q}jobs
        where queue = l.queue
          and job_type > l.job_type
          and status = 'queued'
          and dedupe_slot = 0
        order by job_type, payload_schema
        limit 1
      )
    )
  ),
  unread as materialized (
    select l.queue, l.job_type, l.payload_schema
    from lanes l
    where not exists (
      select 1
      from json_each(?2) known
      where known.value ->> 0 = l.job_type
        and known.value ->> 1 >= l.payload_schema
    )
    limit 2000
  )
select
  u.job_type,
  u.payload_schema,
  sum(
    (
      select count(*)
      from (
        select 1
        from {q}jobs
        where queue = u.queue
          and job_type = u.job_type
          and payload_schema = u.payload_schema
          and status = 'queued'
          and dedupe_slot = 0
        limit 1000
      )
    )
  )
from unread u
group by u.job_type, u.payload_schema
order by u.job_type, u.payload_schema
