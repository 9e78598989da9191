-- Asks for a running job to be called off; the first request's time stays.
-- params: ?1 row number, ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}jobs
set
  cancel_requested_at = coalesce(cancel_requested_at, ?2),
  updated_at = ?2
where seq = ?1
  and status = 'processing'
