-- Keeps the idempotency keys of a job that waits again from running out before it has ended.
-- params: $1 id
-- returns: nothing
-- locks: the rows of the keys
-- index: idempotency_keys_job
update {q}.idempotency_keys
set
  expires_at = null,
  final_state = null
where job_id = $1
