-- Takes due jobs: starts their attempts and puts them under a lease. Jumps from lane to lane, a
-- lane being one (queue, job_type, payload_schema, crashes, priority), so jobs of other types, of
-- newer payload schemas or of a later time are never walked over. Chooses without locks, with some
-- to spare for those that others take meanwhile, then locks one by one in the order to run them
-- until there are enough.
-- params: $1 queues in the order to serve them, $2 types and $3 the highest payload schema of
--   each, $4 largest number of jobs, $5 how many to choose beyond that, $6 from how many crashes a
--   job is a suspect, $7 largest number of suspects, $8 worker, $9 lease in ms, $10 now or null
-- returns: a row per job in no order (id, now, the other columns of a claimed job, priority)
-- locks: the taken jobs, skipping those that are locked
-- index: jobs_due, primary key
with recursive
  clock (now) as materialized (
    select coalesce($10::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  asked (place, queue, job_type, highest) as materialized (
    select q.place, q.queue, t.job_type, t.highest
    from unnest($1::text[]) with ordinality q (queue, place)
    cross join unnest($2::text[], $3::bigint[]) t (job_type, highest)
  ),
  lanes (place, queue, job_type, highest, payload_schema, crashes, priority) as (
    select
      asked.place,
      asked.queue,
      asked.job_type,
      asked.highest,
      j.payload_schema,
      j.crashes,
      j.priority
    from asked
    cross join lateral (
      select payload_schema, crashes, priority
      from {q}.jobs
      where queue = asked.queue
        and job_type = asked.job_type
        and payload_schema <= asked.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    ) j
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
    cross join lateral (
      select payload_schema, crashes, priority
      from {q}.jobs
      where queue = l.queue
        and job_type = l.job_type
        and (payload_schema, crashes, priority) > (l.payload_schema, l.crashes, l.priority)
        and payload_schema <= l.highest
        and status = 'queued'
        and dedupe_slot = 0
      order by payload_schema, crashes, priority
      limit 1
    ) j
  ),
  due (place, priority, run_at, id, is_suspect) as materialized (
    select
      l.place,
      l.priority,
      j.run_at,
      j.id,
      l.crashes >= $6
    from lanes l
    cross join lateral (
      select run_at, id
      from {q}.jobs
      where queue = l.queue
        and job_type = l.job_type
        and payload_schema = l.payload_schema
        and crashes = l.crashes
        and priority = l.priority
        and run_at <= (select now from clock)
        and status = 'queued'
        and dedupe_slot = 0
      order by run_at, id
      limit $4::bigint + $5::bigint
    ) j
    where l.crashes < $6 or $7 > 0
  ),
  counted (place, priority, run_at, id, is_suspect, nth) as (
    select
      place,
      priority,
      run_at,
      id,
      is_suspect,
      row_number() over (partition by is_suspect order by place, priority desc, run_at, id)
    from due
  ),
  chosen (id) as materialized (
    select id
    from counted
    where not is_suspect or nth <= $7
    order by place, priority desc, run_at, id
    limit $4::bigint + $5::bigint
  ),
  taken (id) as materialized (
    select j.id
    from chosen
    cross join lateral (
      select id
      from {q}.jobs
      where id = chosen.id
        and run_at <= (select now from clock)
        and status = 'queued'
        and dedupe_slot = 0
      limit 1
      for update skip locked
    ) j
    limit $4::bigint
  )
update {q}.jobs
set
  status = 'processing',
  attempts = attempts + 1,
  locked_until = {q}.later((select now from clock), $9),
  locked_by = $8,
  lock_token = nextval('{q}.lease_tokens'),
  dedupe_key = case when not dedupe_until_started then dedupe_key end,
  updated_at = (select now from clock),
  started_at = (select now from clock)
where id = any (array(select id from taken))
returning
  id,
  updated_at,
  job_type,
  queue,
  payload,
  payload_schema,
  attempts,
  max_attempts,
  crashes,
  snoozes,
  generation,
  lock_token,
  locked_until,
  run_at,
  cancel_requested_at,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  trace_context,
  created_at,
  priority
