-- Reads back what this connection promises.
-- only: Postgres keeps no settings on a connection.
-- params: none
-- returns: one row (journal mode, synchronous as a number, foreign keys, busy timeout in ms)
-- locks: nothing
-- index: none
select
  (select journal_mode from pragma_journal_mode),
  (select synchronous from pragma_synchronous),
  (select foreign_keys from pragma_foreign_keys),
  (select timeout from pragma_busy_timeout),
  (select file from pragma_database_list where name = 'main')
