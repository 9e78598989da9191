-- Says which of some names are taken in this database; SQLite does not tell upper from lower case.
-- params: ?1 names in lower case as a JSON array
-- returns: a row per name that is taken (the name in lower case, whether it is a table's)
-- locks: nothing
-- index: none
select lower(name), type = 'table'
from sqlite_schema
where lower(name) in (
  select value
  from json_each(?1)
)
