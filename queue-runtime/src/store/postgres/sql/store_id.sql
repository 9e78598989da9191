-- Reads the id of this store.
-- params: none
-- returns: one row (the id as text)
-- locks: nothing
-- index: primary key of meta
select value
from {q}.meta
where name = 'store_id'
