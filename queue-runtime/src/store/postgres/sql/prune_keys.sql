-- Removes idempotency keys whose window has passed, the oldest first.
--
-- Finds what it has locked by the place of its row (ctid). A join may walk over the whole table: all of
-- it is expected to be one page if it was empty when this was planned.
-- params: $1 largest number of keys, $2 now or null
-- returns: a row per removed key (1)
-- locks: the removed keys, skipping those that are locked
-- index: idempotency_keys_expiry
delete from {q}.idempotency_keys
where ctid = any (array(
  select ctid
  from {q}.idempotency_keys
  where expires_at <= coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  order by expires_at, job_type, idempotency_key
  limit $1
  for update skip locked
))
returning 1
