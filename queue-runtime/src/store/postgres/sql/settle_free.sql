-- Tells which attempts can end at once, and holds what that takes: their jobs, the jobs that wait
-- behind them, and the idempotency keys that are bound to them. Waits for no row.
-- only: SQLite has one writer at a time, who waits for the whole database and never for a row.
-- params: arrays with one element per attempt: $1 ids, $2 lease tokens
-- returns: a row per attempt that holds its job (id, lease token, whether it can end at once)
-- locks: those rows in the order of the jobs' ids, skipping those that are locked
-- index: primary key of jobs, jobs_dedupe, idempotency_keys_job
select asked.id, asked.token, coalesce(free.can_end, false)
from (
  select id, token
  from unnest($1::uuid[], $2::bigint[]) item (id, token)
  order by id
  limit 10000
) asked
cross join lateral (
  select id
  from {q}.jobs
  where id = asked.id
    and lock_token = asked.token
    and locked_by is not null
  limit 1
) held
left join lateral (
  select
    (
      select count(*)
      from {q}.idempotency_keys
      where job_id = j.id
    ) = (
      select count(*)
      from (
        select 1
        from {q}.idempotency_keys
        where job_id = j.id
        for no key update skip locked
      ) k
    )
    and coalesce(
      (
        select (
          select true
          from {q}.jobs
          where id = behind.id
          limit 1
          for no key update skip locked
        ) is not null
        from (
          select id
          from {q}.jobs
          where job_type = j.job_type
            and dedupe_key = j.dedupe_key
            and dedupe_slot > 0
          limit 1
        ) behind
        where j.dedupe_slot = 0
      ),
      true
    ) as can_end
  from (
    select id, job_type, dedupe_key, dedupe_slot
    from {q}.jobs
    where id = asked.id
      and lock_token = asked.token
      and locked_by is not null
    limit 1
    for update skip locked
  ) j
) free on true
