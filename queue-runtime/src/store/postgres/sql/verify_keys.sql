-- Lists idempotency keys that last for a job which is not stored, that end before their job, or whose
-- job is of another type. A key that ends may outlive its job.
-- params: none
-- returns: a row per key (job_type, key, id of the job, whether the key ends, whether its job is live
--   or null if there is none, the job's own type or null)
-- locks: nothing
-- index: none, walks over all keys and looks their jobs up
select
  k.job_type,
  k.idempotency_key,
  k.job_id::text,
  k.expires_at is not null,
  case
    when j.id is not null then true
    when f.id is not null then false
  end,
  coalesce(j.job_type, f.job_type)
from {q}.idempotency_keys k
left join {q}.jobs j on j.id = k.job_id
left join {q}.finished_jobs f on f.id = k.job_id
where k.expires_at is null and j.id is null and f.id is null
  or k.expires_at is not null and j.id is not null
  or coalesce(j.job_type, f.job_type) <> k.job_type
order by k.job_type, k.idempotency_key
