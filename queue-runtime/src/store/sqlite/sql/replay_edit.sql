-- Gives a finished job another payload, before `replay` copies it back to wait.
-- params: ?1 row number, ?2 payload, ?3 payload_schema, ?4 whether the rest is set too,
--   ?5 dedupe_key, ?6 dedupe_until_started, ?7 cache_key, ?8 cache_version
-- returns: nothing
-- locks: runs inside the writing transaction
-- index: primary key
update {q}finished_jobs
set
  payload_schema = ?3,
  dedupe_key = iif(?4, ?5, dedupe_key),
  dedupe_until_started = iif(?4, ?6, dedupe_until_started),
  cache_key = iif(?4, ?7, cache_key),
  cache_version = iif(?4, ?8, cache_version),
  payload = ?2
where seq = ?1
