-- Takes the write lock as the first thing in a caller's transaction, if this is our store.
-- params: ?1 the id of our store
-- returns: one row (1) if the database is our store, none otherwise
-- locks: the database for writing, waiting for it; writes back a value that does not change,
--   because only a write makes SQLite wait for the lock instead of failing later
-- index: primary key of meta
update {q}meta
set value = value
where name = 'store_id'
  and value = ?1
returning 1
