-- Removes the oldest final jobs whose time is over.
-- params: ?1 largest number of jobs, ?2 now in ms or null, how long to keep in ms: ?3 done,
--   ?4 dead letters, ?5 cancelled
-- returns: a row per removed job (row number)
-- locks: runs inside the writing transaction
-- index: finished_jobs_age
delete from {q}finished_jobs
where seq in (
  with
    clock (now) as materialized (
      select coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
    ),
    kept (status, span) as (
      values ('done', ?3), ('dead_letter', ?4), ('cancelled', ?5)
    )
  select f.seq
  from clock
  cross join kept
  cross join {q}finished_jobs f
  where f.status = kept.status
    and f.finished_at <= now - kept.span
  order by f.finished_at, f.id
  limit cast(?1 as integer)
)
returning seq
