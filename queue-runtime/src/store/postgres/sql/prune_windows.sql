-- Removes dedupe windows that have passed, the oldest first.
-- params: $1 largest number of windows, $2 now or null
-- returns: a row per removed window (1)
-- locks: the removed windows, skipping those that are locked
-- index: dedupe_windows_expiry, primary key
with
  -- Once and for all: as a plain subquery it may be run for each row that it is joined with, each
  -- time with other rows.
  old (job_type, dedupe_key) as materialized (
    select job_type, dedupe_key
    from {q}.dedupe_windows
    where expires_at <= coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
    order by expires_at, job_type, dedupe_key
    limit $1
    for update skip locked
  )
delete from {q}.dedupe_windows w
using old
where w.job_type = old.job_type
  and w.dedupe_key = old.dedupe_key
returning 1
