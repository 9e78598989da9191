-- The bare loop's table: what a claim and a completion need, and nothing else.
create table postgres_speed.raw_jobs (
  id uuid primary key,
  queue text not null,
  priority smallint not null,
  status text not null,
  run_at timestamptz not null,
  attempts integer not null,
  payload text not null
);

create index raw_jobs_due
on postgres_speed.raw_jobs (queue, priority, run_at, id)
where status = 'queued';
