-- Layout B: waiting, leased and final jobs in three tables; dedupe keys in a fourth, since a
-- unique index cannot cover two.
create table postgres_layouts.b_jobs (
  id uuid primary key,
  job_type text not null,
  queue text not null,
  payload_schema integer not null,
  status text not null check (status in ('queued')),
  priority smallint not null,
  attempts integer not null default 0,
  max_attempts integer not null,
  crashes integer not null default 0,
  snoozes integer not null default 0,
  generation integer not null default 0,
  run_at timestamptz not null,
  cancel_requested_at timestamptz,
  locked_until timestamptz,
  locked_by text,
  lock_token bigint,
  dedupe_key text,
  dedupe_slot smallint not null default 0 check (dedupe_slot in (0, 1)),
  dedupe_until_started boolean not null default false,
  idempotency_key text,
  cache_key text,
  cache_version bigint,
  deadline timestamptz,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  last_error text,
  payload text not null
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

create index b_jobs_due
on postgres_layouts.b_jobs (queue, job_type, payload_schema, crashes, priority, run_at, id)
where status = 'queued' and dedupe_slot = 0;

create table postgres_layouts.b_leased_jobs (
  id uuid primary key,
  job_type text not null,
  queue text not null,
  payload_schema integer not null,
  status text not null check (status in ('processing')),
  priority smallint not null,
  attempts integer not null default 0,
  max_attempts integer not null,
  crashes integer not null default 0,
  snoozes integer not null default 0,
  generation integer not null default 0,
  run_at timestamptz not null,
  cancel_requested_at timestamptz,
  locked_until timestamptz,
  locked_by text,
  lock_token bigint,
  dedupe_key text,
  dedupe_slot smallint not null default 0 check (dedupe_slot in (0, 1)),
  dedupe_until_started boolean not null default false,
  idempotency_key text,
  cache_key text,
  cache_version bigint,
  deadline timestamptz,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz,
  last_error text,
  payload text not null
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

create index b_leased_jobs_leases
on postgres_layouts.b_leased_jobs (locked_until)
where locked_until is not null;

create table postgres_layouts.b_dedupe_keys (
  job_type text not null,
  dedupe_key text not null,
  dedupe_slot smallint not null,
  job_id uuid not null,
  primary key (job_type, dedupe_key, dedupe_slot)
) with (
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_analyze_scale_factor = 0.02,
  autovacuum_vacuum_cost_delay = 0
);

create table postgres_layouts.b_finished_jobs (
  id uuid primary key,
  job_type text not null,
  queue text not null,
  payload_schema integer not null,
  status text not null check (status in ('done', 'dead_letter', 'cancelled')),
  priority smallint not null,
  attempts integer not null default 0,
  max_attempts integer not null,
  crashes integer not null default 0,
  snoozes integer not null default 0,
  generation integer not null default 0,
  run_at timestamptz not null,
  cancel_requested_at timestamptz,
  locked_until timestamptz,
  locked_by text,
  lock_token bigint,
  dedupe_key text,
  dedupe_slot smallint not null default 0 check (dedupe_slot in (0, 1)),
  dedupe_until_started boolean not null default false,
  idempotency_key text,
  cache_key text,
  cache_version bigint,
  deadline timestamptz,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  started_at timestamptz,
  finished_at timestamptz not null,
  last_error text,
  payload text not null
);

create table postgres_layouts.b_attempts (
  job_id uuid not null,
  token bigint not null,
  number integer not null,
  worker text not null,
  started_at timestamptz not null,
  finished_at timestamptz,
  outcome text,
  error text,
  primary key (job_id, token)
);

create index b_finished_jobs_age
on postgres_layouts.b_finished_jobs (status, finished_at, id);

create sequence postgres_layouts.b_tokens;
