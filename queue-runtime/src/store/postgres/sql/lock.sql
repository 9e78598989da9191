-- Says whether the database that a caller's transaction is on holds our store. Nothing needs to
-- be locked here: rows are locked one by one as they are met.
-- params: $1 the id of our store
-- returns: one row (1) if the database holds our store, none otherwise
-- locks: nothing
-- index: primary key of meta
select 1
from {q}.meta
where name = 'store_id'
  and value = $1
