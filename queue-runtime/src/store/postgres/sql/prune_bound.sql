-- Lets the idempotency keys of removed jobs run out that were bound just as their jobs ended.
-- only: SQLite has one writer at a time, so no job ends while a key is bound to it.
-- params: $1 ids of the jobs, $2 now or null
-- returns: nothing
-- locks: the rows of the keys
-- index: idempotency_keys_job
update {q}.idempotency_keys
set expires_at = greatest(
  {q}.later(created_at, window_ms),
  coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
)
where job_id = any ($1::uuid[])
  and expires_at is null
