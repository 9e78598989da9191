-- Removes the oldest final jobs whose time is over.
-- params: $1 largest number of jobs, $2 now or null, how long to keep in ms: $3 done, $4 dead
--   letters, $5 cancelled
-- returns: a row per removed job (id)
-- locks: the removed jobs, skipping those that are locked
-- index: finished_jobs_age, primary key
delete from {q}.finished_jobs
where id = any (array(
  select old.id
  from (
    values ('done', $3::bigint), ('dead_letter', $4::bigint), ('cancelled', $5::bigint)
  ) kept (status, span)
  cross join lateral (
    select id, finished_at
    from {q}.finished_jobs
    where status = kept.status
      and finished_at <= {q}.later(coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp())), -kept.span)
    order by finished_at, id
    limit $1
    for update skip locked
  ) old
  order by old.finished_at, old.id
  limit $1
))
returning id
