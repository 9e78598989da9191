-- Keeps others from changing the tables until the migrating transaction ends.
-- only: SQLite's write lock does that.
-- params: $1 the number that stands for the schema
-- returns: one row (nothing)
-- locks: an advisory lock of the transaction
-- index: none
select pg_advisory_xact_lock($1)
