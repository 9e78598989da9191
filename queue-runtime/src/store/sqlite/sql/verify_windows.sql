-- Lists dedupe windows whose job is of another type. A window may outlive its job.
-- params: none
-- returns: a row per key (job_type, key, id of the job, whether the key ends, whether its job is live
--   or null if there is none, the job's own type or null)
-- locks: nothing
-- index: none, walks over all keys and looks their jobs up
select
  k.job_type,
  k.dedupe_key,
  k.job_id,
  1,
  case
    when j.id is not null then 1
    when f.id is not null then 0
  end,
  coalesce(j.job_type, f.job_type)
from {q}dedupe_windows k
left join {q}jobs j on j.id = k.job_id
left join {q}finished_jobs f on f.id = k.job_id
where coalesce(j.job_type, f.job_type) <> k.job_type
order by k.job_type, k.dedupe_key
