-- Creates the schema of the queue's tables.
-- only: SQLite has no schemas.
-- params: none
-- returns: nothing
-- locks: runs inside the migrating transaction
-- index: none
create schema if not exists {q}
