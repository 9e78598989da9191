-- Counts what may still have to be decoded, by type, queue and payload schema: live jobs and
-- dead letters.
-- Walks over the live jobs, and over no final ones but the dead letters. Behind a pooler, where
-- nothing keeps the planner from it, it may read the whole table of final jobs instead if nearly
-- every page has a dead letter.
-- params: none
-- returns: a row per type, queue and schema that has some, sorted (job_type, queue, payload_schema,
--   queued, processing, dead letters)
-- locks: nothing
-- index: jobs_due, without touching the rows where they are old enough; jobs_behind, jobs_leases,
--   finished_jobs_age
select
  job_type,
  queue,
  payload_schema,
  sum(queued)::bigint,
  sum(processing)::bigint,
  sum(dead_letters)::bigint
from (
  select job_type, queue, payload_schema, count(*) as queued, 0 as processing, 0 as dead_letters
  from {q}.jobs
  where status = 'queued'
    and dedupe_slot = 0
  group by job_type, queue, payload_schema
  union all
  select job_type, queue, payload_schema, count(*) as queued, 0 as processing, 0 as dead_letters
  from {q}.jobs
  where dedupe_slot = 1
  group by job_type, queue, payload_schema
  union all
  select job_type, queue, payload_schema, 0 as queued, count(*) as processing, 0 as dead_letters
  from {q}.jobs
  where locked_until is not null
  group by job_type, queue, payload_schema
  union all
  select job_type, queue, payload_schema, 0 as queued, 0 as processing, count(*) as dead_letters
  from {q}.finished_jobs
  where status = 'dead_letter'
  group by job_type, queue, payload_schema
) counted
group by job_type, queue, payload_schema
order by job_type, queue, payload_schema
