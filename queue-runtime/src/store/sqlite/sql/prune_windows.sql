-- Removes dedupe windows that have passed.
-- params: ?1 largest number of windows, ?2 now in ms or null
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: dedupe_windows_expiry
delete from {q}dedupe_windows
where (job_type, dedupe_key) in (
  select job_type, dedupe_key
  from {q}dedupe_windows
  where expires_at <= coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  order by expires_at
  limit cast(?1 as integer)
)
