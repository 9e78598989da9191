-- Reads a number that changes when another connection has committed.
-- only: Postgres tells of commits by `notify`.
-- params: none
-- returns: one row (the number, comparable within this connection only)
-- locks: nothing
-- index: none
select data_version
from pragma_data_version
