-- Sends jobs back to wait.
-- params: ?1 jobs as a JSON array of arrays (0 row number, 1 delay in ms, 2 outcome, 3 error,
--   4 attempts, 5 crashes, 6 snoozes), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}jobs
set
  status = 'queued',
  attempts = back.item ->> 4,
  crashes = back.item ->> 5,
  snoozes = back.item ->> 6,
  run_at = ?2 + min(back.item ->> 1, 9223372036854775807 - ?2),
  locked_until = null,
  locked_by = null,
  last_outcome = back.item ->> 2,
  updated_at = ?2,
  last_error = coalesce(back.item ->> 3, last_error)
from (
  select value as item
  from json_each(?1)
) as back
where seq = back.item ->> 0
