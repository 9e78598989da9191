-- The tables of a queue inside one SQLite file, beside whatever else lives in it.
--
-- Live jobs and final jobs are two tables with the same columns, so that a claim never meets
-- history. `seq` is a job's row number for life: it moves with the row, is never reused, and is
-- what attempts refer to. The job's id is text, in the form that logs and people use; it is
-- looked up through its unique index and joined on nowhere. Wide columns come last, so that
-- reading the narrow ones never walks a long row's overflow pages.

create table {q}meta (
  name text primary key not null,
  value text not null
) strict, without rowid;

insert into {q}meta (name, value)
values ('store_id', lower(hex(randomblob(16))));

create table {q}jobs (
  seq integer primary key autoincrement,
  id text not null unique,
  job_type text not null,
  queue text not null,
  payload_schema integer not null,
  status text not null check (status in ('queued', 'processing')),
  priority integer not null,
  attempts integer not null default 0,
  max_attempts integer not null,
  crashes integer not null default 0,
  snoozes integer not null default 0,
  generation integer not null default 0,
  run_at integer not null,
  cancel_requested_at integer,
  locked_until integer,
  locked_by text,
  lock_token integer,
  dedupe_key text,
  dedupe_slot integer not null default 0 check (dedupe_slot in (0, 1)),
  dedupe_until_started integer not null default 0,
  idempotency_key text,
  cache_key text,
  cache_version integer,
  deadline integer,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at integer not null,
  updated_at integer not null,
  started_at integer,
  finished_at integer,
  last_error text,
  payload text not null
) strict;

-- What a claim walks: lanes of (queue, job_type, payload_schema, crashes, priority), each in due
-- order.
create index {q}jobs_due
on {q}jobs (queue, job_type, payload_schema, crashes, priority, run_at, id)
where status = 'queued' and dedupe_slot = 0;

create index {q}jobs_leases
on {q}jobs (locked_until)
where status = 'processing';

create unique index {q}jobs_dedupe
on {q}jobs (job_type, dedupe_key, dedupe_slot)
where dedupe_key is not null;

-- The few jobs that wait behind a running one of the same dedupe key.
create index {q}jobs_behind
on {q}jobs (job_type)
where dedupe_slot = 1;

create table {q}finished_jobs (
  seq integer primary key,
  id text not null unique,
  job_type text not null,
  queue text not null,
  payload_schema integer not null,
  status text not null check (status in ('done', 'dead_letter', 'cancelled')),
  priority integer not null,
  attempts integer not null,
  max_attempts integer not null,
  crashes integer not null,
  snoozes integer not null,
  generation integer not null,
  run_at integer not null,
  cancel_requested_at integer,
  locked_until integer,
  locked_by text,
  lock_token integer,
  dedupe_key text,
  dedupe_slot integer not null,
  dedupe_until_started integer not null,
  idempotency_key text,
  cache_key text,
  cache_version integer,
  deadline integer,
  last_outcome text,
  dead_reason text,
  trace_context text,
  created_at integer not null,
  updated_at integer not null,
  started_at integer,
  finished_at integer not null,
  last_error text,
  payload text not null
) strict;

create index {q}finished_jobs_age
on {q}finished_jobs (status, finished_at, id);

-- The key is the lease token: `autoincrement` never gives a number twice, so it is the one
-- counter of the store.
create table {q}attempts (
  token integer primary key autoincrement,
  job_seq integer not null,
  number integer not null,
  worker text not null,
  started_at integer not null,
  finished_at integer,
  outcome text,
  error text
) strict;

create index {q}attempts_job
on {q}attempts (job_seq);

create table {q}idempotency_keys (
  job_type text not null,
  idempotency_key text not null,
  job_id text not null,
  fingerprint text not null,
  created_at integer not null,
  window_ms integer not null,
  expires_at integer,
  final_state text,
  primary key (job_type, idempotency_key)
) strict, without rowid;

create index {q}idempotency_keys_job
on {q}idempotency_keys (job_id);

create index {q}idempotency_keys_expiry
on {q}idempotency_keys (expires_at)
where expires_at is not null;

create table {q}dedupe_windows (
  job_type text not null,
  dedupe_key text not null,
  job_id text not null,
  expires_at integer not null,
  primary key (job_type, dedupe_key)
) strict, without rowid;

create index {q}dedupe_windows_expiry
on {q}dedupe_windows (expires_at);

create table {q}versions (
  cache_key text primary key not null,
  version integer not null
) strict, without rowid;
