-- Reads the store's time.
-- params: ?1 the time in ms since 1970 UTC to use instead of SQLite's clock, or null
-- returns: one row (now in ms)
-- locks: nothing
-- index: none
select coalesce(?1, cast(round(unixepoch('subsec') * 1000) as integer))
