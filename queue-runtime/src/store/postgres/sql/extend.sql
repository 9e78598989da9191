-- Renews leases, also those that have run out but were not rescued yet. Never waits: a row that
-- somebody holds is left alone.
-- params: arrays with one element per lease: $1 ids, $2 lease tokens; $3 lease in ms, $4 now or
--   null
-- returns: a row per lease that was renewed, or that is held by its row's lock (id, lease token,
--   whether it was renewed, whether a cancel was asked for)
-- locks: the rows of the leases, skipping those that are locked
-- index: primary key
with
  clock (now) as materialized (
    select coalesce($4::timestamptz, date_trunc('milliseconds', statement_timestamp()))
  ),
  asked (id, token) as materialized (
    select id, token
    from unnest($1::uuid[], $2::bigint[]) lease (id, token)
  ),
  free (id) as materialized (
    select j.id
    from asked
    cross join lateral (
      select id
      from {q}.jobs
      where id = asked.id
        and lock_token = asked.token
        and locked_by is not null
      limit 1
      for no key update skip locked
    ) j
  ),
  kept (id, token, cancel) as (
    update {q}.jobs
    set
      locked_until = {q}.later((select now from clock), $3),
      updated_at = (select now from clock)
    where id = any (array(select id from free))
    returning
      id,
      lock_token,
      cancel_requested_at is not null
  )
select id, token, true, cancel
from kept
union all
select asked.id, asked.token, false, false
from asked
cross join lateral (
  select id
  from {q}.jobs
  where id = asked.id
    and lock_token = asked.token
    and locked_by is not null
  limit 1
) j
where not exists (
  select 1
  from free
  where free.id = asked.id
)
