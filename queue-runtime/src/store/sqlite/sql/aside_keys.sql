-- Lets the idempotency keys of jobs that were set aside run out.
-- only: Postgres uses `settle_keys`, since it knows the ids of the jobs.
-- params: ?1 jobs as a JSON array of arrays (0 row number), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction, after the jobs were copied to the finished ones
-- index: idempotency_keys_job
with
  final (id) as materialized (
    select f.id
    from json_each(?1) aside
    cross join {q}finished_jobs f
    where f.seq = aside.value ->> 0
  )
update {q}idempotency_keys
set
  expires_at = max(created_at + min(window_ms, 9223372036854775807 - created_at), ?2),
  final_state = 'dead_letter'
from final
where job_id = final.id
