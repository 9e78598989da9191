-- Opens dedupe windows, in place of those that have passed.
-- params: arrays with one element per window: $1 job types, $2 dedupe keys, $3 job ids,
--   $4 windows in ms; $5 now or null
-- returns: nothing; a window that somebody opened meanwhile is left out, so fewer rows are
--   affected
-- locks: the rows of the windows, in the order of the arrays
-- index: primary key
insert into {q}.dedupe_windows as w (
  job_type,
  dedupe_key,
  job_id,
  expires_at
)
select
  asked.job_type,
  asked.dedupe_key,
  asked.job_id,
  {q}.later(clock.now, asked.window_ms)
from (
  select coalesce($5::timestamptz, date_trunc('milliseconds', statement_timestamp())) as now
) clock
cross join unnest(
  $1::text[],
  $2::text[],
  $3::uuid[],
  $4::bigint[]
) asked (job_type, dedupe_key, job_id, window_ms)
on conflict (job_type, dedupe_key) do update
set
  job_id = excluded.job_id,
  expires_at = excluded.expires_at
where w.expires_at <= coalesce($5::timestamptz, date_trunc('milliseconds', statement_timestamp()))
