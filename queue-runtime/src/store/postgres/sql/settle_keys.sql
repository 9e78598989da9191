-- Lets the idempotency keys of jobs that became final run out, and remembers the final states.
-- params: arrays with one element per job: $1 ids, $2 final states; $3 now or null
-- returns: nothing
-- locks: the rows of the keys
-- index: idempotency_keys_job
update {q}.idempotency_keys k
set
  expires_at = greatest(
    {q}.later(k.created_at, k.window_ms),
    coalesce($3::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  final_state = final.state
from unnest($1::uuid[], $2::text[]) final (id, state)
where k.job_id = any ($1::uuid[])
  and k.job_id = final.id
