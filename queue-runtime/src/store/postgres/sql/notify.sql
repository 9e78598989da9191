-- Tells the listeners on a channel. They hear it after the commit of this transaction, and never
-- if it is rolled back; equal notifications of one transaction arrive as one.
-- only: SQLite has no notifications.
-- params: $1 the channel, text of at most 63 bytes; $2 the payload, text
-- returns: one row (nothing)
-- locks: no row. From just before its commit to the end of that, it holds a lock that every
--   transaction which notifies needs: their commits wait for the disk one after the other
-- index: none
select pg_notify($1, $2)
