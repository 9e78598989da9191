-- Inserts waiting jobs; leaves out those whose id is stored already, live or final: the conflict
-- alone would wait for a job that ends meanwhile, find its place free, and store it again.
--
-- After 20 ms a row has waited for one before it. A repeat of its call may have been stored, run and
-- ended since, which the statement's own look-ups do not see; the function does, at a price.
-- The look-ups have limits, for the planner: see `insert_probe.sql`.
-- params: arrays with one element per job: $1 ids, $2 job types, $3 queues, $4 payload schemas,
--   $5 priorities, $6 max attempts, $7 due after in ms, $8 due at, $9 deadline after in ms,
--   $10 whether the dedupe key is free once started, $11 idempotency keys, $12 cache keys,
--   $13 cache versions, $14 trace contexts, $15 payloads, $16 dedupe keys, $17 dedupe slots;
--   $18 now or null
-- returns: nothing
-- locks: the new rows, in the order of the arrays; waits for a transaction that inserts the same
--   id or dedupe key
-- index: primary keys of both tables
insert into {q}.jobs (
  id,
  job_type,
  queue,
  payload_schema,
  status,
  priority,
  max_attempts,
  run_at,
  dedupe_key,
  dedupe_slot,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  deadline,
  trace_context,
  created_at,
  updated_at,
  payload
)
select
  item.id,
  item.job_type,
  item.queue,
  item.payload_schema,
  'queued',
  item.priority,
  item.max_attempts,
  greatest(clock.now, item.due_at, {q}.later(clock.now, item.due_after)),
  item.dedupe_key,
  item.dedupe_slot,
  item.dedupe_until_started,
  item.idempotency_key,
  item.cache_key,
  item.cache_version,
  {q}.later(clock.now, item.deadline_after),
  item.trace_context,
  clock.now,
  clock.now,
  item.payload
from (
  select coalesce($18::timestamptz, date_trunc('milliseconds', statement_timestamp())) as now
) clock
cross join unnest(
  $1::uuid[],
  $2::text[],
  $3::text[],
  $4::bigint[],
  $5::smallint[],
  $6::bigint[],
  $7::bigint[],
  $8::timestamptz[],
  $9::bigint[],
  $10::boolean[],
  $11::text[],
  $12::text[],
  $13::bigint[],
  $14::text[],
  $15::text[],
  $16::text[],
  $17::smallint[]
) item (
  id,
  job_type,
  queue,
  payload_schema,
  priority,
  max_attempts,
  due_after,
  due_at,
  deadline_after,
  dedupe_until_started,
  idempotency_key,
  cache_key,
  cache_version,
  trace_context,
  payload,
  dedupe_key,
  dedupe_slot
)
where case
    when clock_timestamp() < statement_timestamp() + interval '20 milliseconds' then (
        select true
        from {q}.finished_jobs
        where id = item.id
        limit 1
      ) is null
      and (
        select true
        from {q}.jobs
        where id = item.id
        limit 1
      ) is null
    else not {q}.is_stored(item.id)
  end
on conflict (id) do nothing
