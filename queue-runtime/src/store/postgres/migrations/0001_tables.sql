-- The tables of a queue in a schema of their own.
--
-- No table is cut at its end by a vacuum: that takes the table away from everybody for as long as
-- the disk needs, leases included, and a queue grows back to its size at once.
--
-- Live jobs and final jobs are two tables with the same columns, so that a claim never meets
-- history; `done_by` alone is a final job's own. The attempt that runs is part of its job's row and
-- moves to `attempts` when it ends, unless it succeeds: it stays in the row, so that a claim and a
-- success write one row each. Instants are whole milliseconds; `infinity` is the end of
-- time. Text that is compared is compared by its bytes, whatever the database's language is.

create table {q}.meta (
  name text primary key,
  value text not null
);

insert into {q}.meta (name, value)
values ('store_id', replace(gen_random_uuid()::text, '-', ''));

-- Adds a span in milliseconds, which may be negative, to an instant; stops at the ends of time
-- instead of failing. A hundred thousand years count as for ever. The product is written with the
-- types that Postgres has it for, so that no operator in the caller's search path fits better.
create function {q}.later(at timestamptz, span_ms bigint)
returns timestamptz
language sql
stable
parallel safe
as $$
  select case
    when span_ms > 3155760000000000 then 'infinity'::timestamptz
    when span_ms < -3155760000000000 then '-infinity'::timestamptz
    else at + span_ms::double precision * interval '1 millisecond'
  end
$$;

-- Says whether a job is stored, live or final, as of this moment: a statement's own look-ups see what
-- was there when it began, and an insert may wait in between for what another transaction holds.
create function {q}.is_stored(job uuid)
returns boolean
language plpgsql
volatile
as $$
begin
  return exists (select 1 from {q}.jobs where id = job)
    or exists (select 1 from {q}.finished_jobs where id = job);
end
$$;

-- Gives every claim a higher number than all before it: the lease tokens.
create sequence {q}.lease_tokens;

create table {q}.jobs (
  id uuid primary key,
  job_type text collate "C" not null,
  queue text collate "C" not null,
  payload_schema bigint not null check (payload_schema between 0 and 4294967295),
  status text not null check (status in ('queued', 'processing')),
  priority smallint not null,
  attempts bigint not null default 0 check (attempts between 0 and 4294967295),
  max_attempts bigint not null check (max_attempts between 0 and 4294967295),
  crashes bigint not null default 0 check (crashes between 0 and 4294967295),
  snoozes bigint not null default 0 check (snoozes between 0 and 4294967295),
  generation bigint not null default 0 check (generation between 0 and 4294967295),
  run_at timestamptz not null,
  cancel_requested_at timestamptz,
  locked_until timestamptz,
  locked_by text,
  lock_token bigint,
  dedupe_key text collate "C",
  dedupe_slot smallint not null default 0 check (dedupe_slot in (0, 1)),
  dedupe_until_started boolean not null default false,
  idempotency_key text collate "C",
  cache_key text collate "C",
  cache_version bigint check (cache_version >= 0),
  deadline timestamptz,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  last_error text,
  payload text not null,
  check ((status = 'processing') = (locked_until is not null)),
  check ((status = 'processing') = (locked_by is not null)),
  check (status = 'queued' or lock_token is not null and started_at is not null)
)
with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_insert_scale_factor = 0.05,
  autovacuum_analyze_scale_factor = 0.05,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false
);

-- What a claim walks: lanes of (queue, job_type, payload_schema, crashes, priority), each in due
-- order.
create index jobs_due
on {q}.jobs (queue, job_type, payload_schema, crashes, priority, run_at, id)
where status = 'queued' and dedupe_slot = 0;

-- Not by the status, which statements that look jobs up by id also ask for: the planner would take
-- this index for them and walk all leases.
create index jobs_leases
on {q}.jobs (locked_until, id)
where locked_until is not null;

create unique index jobs_dedupe
on {q}.jobs (job_type, dedupe_key, dedupe_slot)
where dedupe_key is not null;

-- The few jobs that wait behind a running one of the same dedupe key.
create index jobs_behind
on {q}.jobs (job_type)
where dedupe_slot = 1;

create table {q}.finished_jobs (
  id uuid primary key,
  job_type text collate "C" not null,
  queue text collate "C" not null,
  payload_schema bigint not null,
  status text not null check (status in ('done', 'dead_letter', 'cancelled')),
  priority smallint not null,
  attempts bigint not null,
  max_attempts bigint not null,
  crashes bigint not null,
  snoozes bigint not null,
  generation bigint not null,
  run_at timestamptz not null,
  cancel_requested_at timestamptz,
  locked_until timestamptz check (locked_until is null),
  locked_by text check (locked_by is null),
  lock_token bigint,
  dedupe_key text collate "C",
  dedupe_slot smallint not null,
  dedupe_until_started boolean not null,
  idempotency_key text collate "C",
  cache_key text collate "C",
  cache_version bigint,
  deadline timestamptz,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  done_by text,
  last_error text,
  payload text not null
)
with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false
);

create index finished_jobs_age
on {q}.finished_jobs (status, finished_at, id);

-- Attempts that have ended, without those whose success ended a job: they are part of its row, with
-- `done_by` as their worker. One index serves all: each more costs every settlement.
create table {q}.attempts (
  token bigint not null,
  job_id uuid not null,
  number bigint not null,
  worker text not null,
  started_at timestamptz not null,
  finished_at timestamptz not null,
  outcome text not null,
  error text,
  primary key (job_id, token)
)
with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0,
  vacuum_truncate = false
);

create table {q}.idempotency_keys (
  job_type text collate "C" not null,
  idempotency_key text collate "C" not null,
  job_id uuid not null,
  fingerprint text not null,
  created_at timestamptz not null,
  window_ms bigint not null,
  expires_at timestamptz,
  final_state text,
  primary key (job_type, idempotency_key)
);

create index idempotency_keys_job
on {q}.idempotency_keys (job_id);

create index idempotency_keys_expiry
on {q}.idempotency_keys (expires_at)
where expires_at is not null;

create table {q}.dedupe_windows (
  job_type text collate "C" not null,
  dedupe_key text collate "C" not null,
  job_id uuid not null,
  expires_at timestamptz not null,
  primary key (job_type, dedupe_key)
);

create index dedupe_windows_expiry
on {q}.dedupe_windows (expires_at);

create table {q}.versions (
  cache_key text collate "C" primary key,
  version bigint not null check (version >= 0)
);
