-- Says whether this database has a list of schema changes.
-- params: none
-- returns: one row (1 or 0)
-- locks: nothing
-- index: none
select exists (
  select 1
  from sqlite_schema
  where type = 'table'
    and name = '{q}migrations'
)
