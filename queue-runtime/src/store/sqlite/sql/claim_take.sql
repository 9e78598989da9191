-- Puts the chosen jobs under a lease; runs right after `claim_attempts`.
-- only: Postgres chooses and takes in one statement.
-- params: ?1 row numbers of the jobs as a JSON array in claim order, ?2 newest lease token of
--   the store before this claim, ?3 worker, ?4 now in ms, ?5 lease in ms
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}jobs
set
  status = 'processing',
  attempts = attempts + 1,
  locked_until = ?4 + min(?5, 9223372036854775807 - ?4),
  locked_by = ?3,
  lock_token = ?2 + 1 + taken.key,
  dedupe_key = case when dedupe_until_started = 0 then dedupe_key end,
  updated_at = ?4,
  started_at = ?4
from json_each(?1) taken
where seq = taken.value
  and status = 'queued'
