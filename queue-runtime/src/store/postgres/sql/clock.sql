-- Reads the store's time.
-- params: $1 the time to use instead of the server's clock, or null
-- returns: one row (now)
-- locks: nothing
-- index: none
select coalesce($1::timestamptz, date_trunc('milliseconds', statement_timestamp()))
