-- Reads the newest known version of a cached thing.
-- params: $1 cache_key
-- returns: at most one row (version)
-- locks: nothing
-- index: primary key
select version
from {q}.versions
where cache_key = $1
