-- Counts waiting jobs of some queues by type and payload schema, but for those that somebody reads.
-- Jumps from one type and schema to the next, so jobs that are read are never walked over. What is
-- read is taken off before the bound: the jobs of at most two thousand queues, types and schemas are
-- counted, and at most a thousand of each. Jobs that wait behind their dedupe key are left out: the
-- job before them is of the same type, and they are counted when it is their turn. The order of
-- those that are counted is that of the index, or the planner would collect all of them before the
-- first is counted.
-- params: $1 queues, and what is read: $2 types and $3 the highest payload schema of each
-- returns: a row per other type and schema, sorted (job_type, payload_schema, number)
-- locks: nothing
-- index: jobs_due
with recursive
  lanes (queue, job_type, payload_schema) as (
    select j.queue, j.job_type, j.payload_schema
    from (select distinct queue from unnest($1::text[]) q (queue)) served
    cross join lateral (
      select queue, job_type, payload_schema
      from {q}.jobs
      where queue = served.queue
        and status = 'queued'
        and dedupe_slot = 0
      order by job_type, payload_schema
      limit 1
    ) j
    union all
    select j.queue, j.job_type, j.payload_schema
    from lanes l
    cross join lateral (
      select queue, job_type, payload_schema
      from {q}.jobs
      where queue = l.queue
        and (job_type, payload_schema) > (l.job_type, l.payload_schema)
        and status = 'queued'
        and dedupe_slot = 0
      order by job_type, payload_schema
      limit 1
    ) j
  ),
  unread as materialized (
    select l.queue, l.job_type, l.payload_schema
    from lanes l
    where not exists (
      select 1
      from unnest($2::text[], $3::bigint[]) known (job_type, highest)
      where known.job_type = l.job_type
        and known.highest >= l.payload_schema
    )
    limit 2000
  )
select
  u.job_type,
  u.payload_schema,
  sum(waiting.jobs)::bigint
from unread u
cross join lateral (
  select count(*) as jobs
  from (
    select 1
    from {q}.jobs
    where queue = u.queue
      and job_type = u.job_type
      and payload_schema = u.payload_schema
      and status = 'queued'
      and dedupe_slot = 0
    order by crashes, priority, run_at, id
    limit 1000
  ) counted
) waiting
group by u.job_type, u.payload_schema
order by u.job_type, u.payload_schema
