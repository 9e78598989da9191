-- Asks for a running job to be called off; the first request's time stays.
-- params: $1 id, $2 now or null
-- returns: nothing
-- locks: the job
-- index: primary key
update {q}.jobs
set
  cancel_requested_at = coalesce(cancel_requested_at, $2, date_trunc('milliseconds', statement_timestamp())),
  updated_at = coalesce($2::timestamptz, date_trunc('milliseconds', statement_timestamp()))
where id = $1
  and status = 'processing'
