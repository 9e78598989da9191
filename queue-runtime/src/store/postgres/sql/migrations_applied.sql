-- Reads how far the schema has come, and which library it needs at least.
-- params: none
-- returns: one row (newest version or null, highest compatible_from or null)
-- locks: nothing
-- index: none; the table has a row per change
select max(version), max(compatible_from)
from {q}.migrations
