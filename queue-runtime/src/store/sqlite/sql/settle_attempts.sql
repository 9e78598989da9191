-- Ends the history of attempts.
-- params: ?1 attempts as a JSON array of arrays (0 lease token, 1 outcome, 2 error), ?2 now in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}attempts
set
  finished_at = ?2,
  outcome = ended.item ->> 1,
  error = ended.item ->> 2
from (
  select value as item
  from json_each(?1)
) as ended
where token = ended.item ->> 0
