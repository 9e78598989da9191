-- Takes the oldest due jobs, without lease, token or lanes.
-- params: $1 queue, $2 largest number of jobs
-- returns: a row per job, unordered (id, payload, attempts)
-- locks: the taken rows; skips rows that others hold
-- index: raw_jobs_due, primary key
update postgres_speed.raw_jobs
set
  status = 'processing',
  attempts = attempts + 1
where id = any (array(
  select id
  from postgres_speed.raw_jobs
  where queue = $1
    and status = 'queued'
    and run_at <= statement_timestamp()
  order by priority, run_at, id
  limit $2
  for update skip locked
))
returning
  id,
  payload,
  attempts
