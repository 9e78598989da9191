-- Counts waiting jobs by type and payload schema, but for those that somebody reads. Jumps from
-- one queue, type and schema to the next, so jobs that are read are never walked over, and counts
-- at most a thousand of each. Jobs that wait behind their dedupe key are left out: the job before
-- them is of the same type, and they are counted when it is their turn. The order of those that are
-- counted is that of the index, or the planner would collect all of them before the first is counted.
-- params: what is read: $1 types and $2 the highest payload schema of each
-- returns: a row per other type and schema, sorted (job_type, payload_schema, number)
-- locks: nothing
-- index: jobs_due
with recursive
  lanes (queue, job_type, payload_schema) as (
    (
      select queue, job_type, payload_schema
      from {q}.jobs
      where queue >= ''
        and status = 'queued'
        and dedupe_slot = 0
      order by queue, job_type, payload_schema
      limit 1
    )
    union all
    select j.queue, j.job_type, j.payload_schema
    from lanes l
    cross join lateral (
      select queue, job_type, payload_schema
      from {q}.jobs
      where (queue, job_type, payload_schema) > (l.queue, l.job_type, l.payload_schema)
        and status = 'queued'
        and dedupe_slot = 0
      order by queue, job_type, payload_schema
      limit 1
    ) j
  ),
  bounded as materialized (
    select queue, job_type, payload_schema
    from lanes
    limit 2000
  )
select
  l.job_type,
  l.payload_schema,
  sum(waiting.jobs)::bigint
from bounded l
cross join lateral (
  select count(*) as jobs
  from (
    select 1
    from {q}.jobs
    where queue = l.queue
      and job_type = l.job_type
      and payload_schema = l.payload_schema
      and status = 'queued'
      and dedupe_slot = 0
    order by crashes, priority, run_at, id
    limit 1000
  ) counted
) waiting
where not exists (
  select 1
  from unnest($1::text[], $2::bigint[]) known (job_type, highest)
  where known.job_type = l.job_type
    and known.highest >= l.payload_schema
)
group by l.job_type, l.payload_schema
order by l.job_type, l.payload_schema
