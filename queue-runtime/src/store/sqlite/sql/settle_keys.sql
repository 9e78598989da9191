-- Lets the idempotency keys of jobs that became final run out, and remembers the final states.
-- params: ?1 jobs as a JSON array of arrays (0 id, 1 final state), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: idempotency_keys_job
update {q}idempotency_keys
set
  expires_at = max(created_at + min(window_ms, 9223372036854775807 - created_at), ?2),
  final_state = final.item ->> 1
from (
  select value as item
  from json_each(?1)
) as final
where job_id = final.item ->> 0
