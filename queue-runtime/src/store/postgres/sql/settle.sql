-- Finds the jobs that a rescue still may change, and holds them. A row that somebody holds is
-- left alone: its attempt is being settled, or its handler completes it in its own transaction.
-- params: arrays with one element per settlement: $1 ids, $2 lease tokens; $3 now or null
-- returns: a row per job that may be changed (id, lease token)
-- locks: the jobs, skipping those that are locked
-- index: primary key
select j.id, j.lock_token
from unnest($1::uuid[], $2::bigint[]) lease (id, token)
cross join lateral (
  select id, lock_token
  from {q}.jobs
  where id = lease.id
    and lock_token = lease.token
    and coalesce(locked_until, 'infinity') <= coalesce($3::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  limit 1
  for update skip locked
) j
