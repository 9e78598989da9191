-- Ends the history of attempts.
-- only: Postgres ends the attempt in the statement that changes the job.
-- params: ?1 the jobs of the statement that runs right after it, `settle_final` or
--   `settle_queued`, as a JSON array of arrays (1 lease token, or null if no attempt ends,
--   2 outcome, 3 error), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}attempts
set
  finished_at = ?2,
  outcome = ended.item ->> 2,
  error = ended.item ->> 3
from (
  select value as item
  from json_each(?1)
) as ended
where token = ended.item ->> 1
