-- Says whether an attempt holds its job.
-- params: ?1 id, ?2 lease token
-- returns: one row (1) if it does, none otherwise
-- locks: nothing; the caller's transaction holds the write lock already
-- index: unique id
select 1
from {q}jobs
where id = ?1
  and lock_token = ?2
  and status = 'processing'
