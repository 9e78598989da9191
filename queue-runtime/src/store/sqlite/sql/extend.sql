-- Renews leases, also those that have run out but were not rescued yet.
-- params: ?1 leases as a JSON array of arrays (0 id, 1 lease token), ?2 lease in ms, ?3 now in
--   ms or null
-- returns: a row per renewed lease (id, lease token, whether a cancel was asked for)
-- locks: the database for writing, in a short transaction of the heartbeat's own connection
-- index: unique id
update {q}jobs
set
  locked_until = lease.now + min(?2, 9223372036854775807 - lease.now),
  updated_at = lease.now
from (
  select value as item, coalesce(?3, cast(round(unixepoch('subsec') * 1000) as integer)) as now
  from json_each(?1)
) as lease
where {q}jobs.id = lease.item ->> 0
  and status = 'processing'
  and lock_token = lease.item ->> 1
returning
  id,
  lock_token,
  cancel_requested_at is not null
