-- Removes dedupe windows that have passed, the oldest first.
-- params: ?1 largest number of windows, ?2 now in ms or null
-- returns: a row per removed window (1)
-- locks: runs inside the writing transaction
-- index: dedupe_windows_expiry
delete from {q}dedupe_windows
where (job_type, dedupe_key) in (
  select job_type, dedupe_key
  from {q}dedupe_windows
  where expires_at <= coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  order by expires_at, job_type, dedupe_key
  limit cast(?1 as integer)
)
returning 1
