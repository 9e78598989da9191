-- Reads the newest lease token that the store has given, and the highest that is stored.
-- params: none
-- returns: one row (token given or null, token stored or null)
-- locks: nothing
-- index: none, walks over all jobs and attempts
select
  pg_sequence_last_value('{q}.lease_tokens'::regclass),
  greatest(
    (
      select max(lock_token)
      from {q}.jobs
    ),
    (
      select max(lock_token)
      from {q}.finished_jobs
    ),
    (
      select max(token)
      from {q}.attempts
    )
  )
