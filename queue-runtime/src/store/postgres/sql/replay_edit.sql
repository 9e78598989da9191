-- Gives a finished job another payload, before `replay` moves it back to wait.
-- params: $1 id, $2 payload, $3 payload_schema, $4 whether the rest is set too, $5 dedupe_key,
--   $6 dedupe_until_started, $7 cache_key, $8 cache_version
-- returns: nothing; a job that somebody replayed or pruned meanwhile is left out, so no row is
--   affected
-- locks: the finished job
-- index: primary key
update {q}.finished_jobs
set
  payload_schema = $3,
  dedupe_key = case when $4 then $5 else dedupe_key end,
  dedupe_until_started = case when $4 then $6 else dedupe_until_started end,
  cache_key = case when $4 then $7 else cache_key end,
  cache_version = case when $4 then $8 else cache_version end,
  payload = $2
where id = $1
  and status in ('dead_letter', 'cancelled')
