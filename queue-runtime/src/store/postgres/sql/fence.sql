-- Says whether an attempt holds its job, and keeps it from being taken or settled until the
-- transaction ends. A rescue and a heartbeat skip the row meanwhile.
-- params: $1 id, $2 lease token
-- returns: one row (1) if it does, none otherwise
-- locks: the job
-- index: primary key
select 1
from {q}.jobs
where id = $1
  and lock_token = $2
  and locked_by is not null
for update
