-- Removes idempotency keys whose window has passed, the oldest first.
-- params: ?1 largest number of keys, ?2 now in ms or null
-- returns: a row per removed key (1)
-- locks: runs inside the writing transaction
-- index: idempotency_keys_expiry
delete from {q}idempotency_keys
where (job_type, idempotency_key) in (
  select job_type, idempotency_key
  from {q}idempotency_keys
  where expires_at <= coalesce(?2, cast(round(unixepoch('subsec') * 1000) as integer))
  order by expires_at, job_type, idempotency_key
  limit cast(?1 as integer)
)
returning 1
