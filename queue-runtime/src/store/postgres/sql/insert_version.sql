-- Raises the newest known version of cached things; never lowers one. An announcement by a job
-- whose id is stored already counts for nothing, so this runs before the job is inserted.
--
-- The look-ups have limits, for the planner: see `insert_probe.sql`.
-- params: arrays with one element per announcement: $1 cache keys, $2 versions, $3 ids of jobs
--   that may be stored, or null if they are known not to be
-- returns: nothing
-- locks: the rows of the cache keys, in their order
-- index: primary key, primary keys of both job tables
insert into {q}.versions as v (
  cache_key,
  version
)
select
  asked.cache_key,
  max(asked.version)
from unnest($1::text[], $2::bigint[], $3::uuid[]) asked (cache_key, version, job_id)
where (
    select true
    from {q}.jobs
    where id = asked.job_id
    limit 1
  ) is null
  and (
    select true
    from {q}.finished_jobs
    where id = asked.job_id
    limit 1
  ) is null
group by asked.cache_key
order by asked.cache_key collate "C"
on conflict (cache_key) do update
set version = excluded.version
where v.version < excluded.version
