-- Takes due jobs from known lanes, each from a key on: starts their attempts and puts them under a
-- lease. Chooses without locks, with some to spare for those that others take meanwhile, then locks
-- one by one in the order to run them until there are enough. A job that was put off or replaced
-- between look and lock is left out: the lock asks again for what may have changed.
--
-- The numbers beside the parameters are bounds that the planner can see; without them it expects
-- millions of rows and compiles the statement anew at each call. A chosen job is found again by the
-- place of its row (ctid), which is cheaper than by its id: our snapshot keeps the row there. One
-- that another transaction rewrites before we lock it has moved, and stays waiting in any case.
-- params: arrays with one element per lane: $1 places of the queues, $2 queues, $3 types, $4 payload
--   schemas, $5 crashes, $6 priorities, $7 run_at and $8 id from which to look; $9 largest number
--   of jobs, $10 how many to choose beyond that, $11 from how many crashes a job is a suspect,
--   $12 largest number of suspects, $13 worker, $14 lease in ms, $15 now or null
-- returns: a row per job in no order (id, now, the other columns of a claimed job, priority)
-- locks: the taken jobs, skipping those that are locked
-- index: jobs_due
with
  clock (now) as materialized (
    select coalesce($15::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  lanes (place, queue, job_type, payload_schema, crashes, priority, run_at, id) as materialized (
    select
      place,
      queue,
      job_type,
      payload_schema,
      crashes,
      priority,
      run_at,
      id
    from unnest(
      $1::bigint[],
      $2::text[],
      $3::text[],
      $4::bigint[],
      $5::bigint[],
      $6::smallint[],
      $7::timestamptz[],
      $8::uuid[]
    ) lane (place, queue, job_type, payload_schema, crashes, priority, run_at, id)
  ),
  due (place, payload_schema, priority, run_at, id, spot, is_suspect, suspects) as (
    select
      l.place,
      l.payload_schema,
      l.priority,
      j.run_at,
      j.id,
      j.spot,
      l.crashes >= $11::bigint,
      count(*) filter (where l.crashes >= $11::bigint) over (
        order by l.place, l.priority desc, j.run_at, j.id
        rows unbounded preceding
      )
    from (
      select
        place,
        queue,
        job_type,
        payload_schema,
        crashes,
        priority,
        run_at,
        id
      from lanes
      order by place, priority desc
      limit 2000
    ) l
    cross join lateral (
      select run_at, id, spot
      from (
        select run_at, id, ctid as spot
        from {q}.jobs
        where queue = l.queue
          and job_type = l.job_type
          and payload_schema = l.payload_schema
          and crashes = l.crashes
          and priority = l.priority
          and (run_at, id) >= (l.run_at, l.id)
          and run_at <= (select now from clock)
          and status = 'queued'
          and dedupe_slot = 0
        order by run_at, id
        limit 2000
      ) j
      limit case
        when l.crashes < $11::bigint then $9::bigint + $10::bigint
        else $12::bigint
      end
    ) j
  ),
  taken (place) as (
    select j.ctid
    from (
      select spot, payload_schema
      from due
      where not is_suspect or suspects <= $12::bigint
      order by place, priority desc, run_at, id
      limit 4000
    ) chosen
    cross join lateral (
      select ctid
      from {q}.jobs
      where ctid = chosen.spot
        and payload_schema = chosen.payload_schema
        and run_at <= (select now from clock)
        and locked_until is null
        and dedupe_slot = 0
      limit 1
      for update skip locked
    ) j
    limit $9::bigint
  )
update {q}.jobs
set
  status = 'processing',
  attempts = attempts + 1,
  locked_until = {q}.later((select now from clock), $14::bigint),
  locked_by = $13::text,
  lock_token = nextval('{q}.lease_tokens'),
  dedupe_key = case when not dedupe_until_started then dedupe_key end,
  updated_at = (select now from clock),
  started_at = (select now from clock)
where ctid = any (array(select place from taken))
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
