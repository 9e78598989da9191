-- Removes idempotency keys whose window has passed, the oldest first.
-- params: $1 largest number of keys, $2 now or null
-- returns: a row per removed key (1)
-- locks: the removed keys, skipping those that are locked
-- index: idempotency_keys_expiry, primary key
with
  -- Once and for all: as a plain subquery it may be run for each row that it is joined with, each
  -- time with other rows.
  old (job_type, idempotency_key) as materialized (
    select job_type, idempotency_key
    from {q}.idempotency_keys
    where expires_at <= coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
    order by expires_at, job_type, idempotency_key
    limit $1
    for update skip locked
  )
delete from {q}.idempotency_keys k
using old
where k.job_type = old.job_type
  and k.idempotency_key = old.idempotency_key
returning 1
