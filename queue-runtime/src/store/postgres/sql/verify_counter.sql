-- Reads the newest lease token that the store has given, and the highest that is stored. A role that
-- may not look at the sequence gets no answer: newer servers tell it that none was given.
-- params: none
-- returns: one row (token given or null, token stored or null), none without a right
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
where has_sequence_privilege('{q}.lease_tokens'::regclass, 'usage, select')
