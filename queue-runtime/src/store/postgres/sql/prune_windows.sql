-- Removes dedupe windows that have passed, the oldest first.
--
-- Finds what it has locked by the place of its row (ctid). A join may walk over the whole table: all of
-- it is expected to be one page if it was empty when this was planned.
-- params: $1 largest number of windows, $2 now or null
-- returns: a row per removed window (1)
-- locks: the removed windows, skipping those that are locked
-- index: dedupe_windows_expiry
delete from {q}.dedupe_windows
where ctid = any (array(
  select ctid
  from {q}.dedupe_windows
  where expires_at <= coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  order by expires_at, job_type, dedupe_key
  limit $1
  for update skip locked
))
returning 1
