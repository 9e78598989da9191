-- Lets the jobs that wait behind a dedupe key take the place of the one that ended.
--
-- Asks for the slot as `> 0`: for `= 1` the planner would take jobs_behind and walk all jobs that
-- wait behind any key.
-- params: arrays with one element per key: $1 job types, $2 dedupe keys; $3 now or null
-- returns: a row per promoted job (1)
-- locks: the promoted jobs, in the transaction that removed the ended ones
-- index: jobs_dedupe, primary key
update {q}.jobs
set
  dedupe_slot = 0,
  updated_at = coalesce($3::timestamptz, date_trunc('milliseconds', statement_timestamp()))
where id = any (array(
    select j.id
    from unnest($1::text[], $2::text[]) free (job_type, dedupe_key)
    cross join lateral (
      select id
      from {q}.jobs
      where job_type = free.job_type
        and dedupe_key = free.dedupe_key
        and dedupe_slot > 0
      limit 1
    ) j
  ))
  and dedupe_slot > 0
returning 1
