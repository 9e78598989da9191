-- Reads the newest lease token that the store has given, and the highest that is stored.
-- params: none
-- returns: one row (token given or null, token stored or null)
-- locks: nothing
-- index: none, walks over all jobs
select
  (
    select seq
    from sqlite_sequence
    where name = '{q}attempts'
  ),
  (
    select max(token)
    from (
      select max(lock_token) as token
      from {q}jobs
      union all
      select max(lock_token)
      from {q}finished_jobs
      union all
      select max(token)
      from {q}attempts
    )
  )
