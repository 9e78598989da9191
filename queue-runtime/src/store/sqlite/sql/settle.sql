-- Finds the jobs that settlements still may change.
-- params: ?1 settlements as a JSON array of arrays (0 id, 1 lease token, 2 whether the lease
--   must have run out), ?2 now in ms
-- returns: a row per settlement that holds, in order (place in the batch, row number, whether a
--   cancel was asked for, job_type and dedupe_key if another job may wait behind it, whether
--   idempotency keys are bound to it)
-- locks: nothing; runs inside the writing transaction that applies them
-- index: unique id, idempotency_keys_job
with
  batch (place, item) as materialized (
    select key, value
    from json_each(?1)
  )
select
  batch.place,
  j.seq,
  j.cancel_requested_at is not null,
  j.job_type,
  case when j.dedupe_slot = 0 then j.dedupe_key end,
  exists (select 1 from {q}idempotency_keys k where k.job_id = j.id)
from batch
cross join {q}jobs j
where j.id = item ->> 0
  and j.status = 'processing'
  and j.lock_token = item ->> 1
  and (item ->> 2 = 0 or j.locked_until <= ?2)
order by batch.place
