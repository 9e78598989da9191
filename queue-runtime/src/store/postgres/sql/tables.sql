-- Says which of some names are taken in a schema.
-- params: $1 names, $2 the schema's name
-- returns: a row per name that is taken (the name, whether it is a table's)
-- locks: nothing
-- index: the catalogue's own
select c.relname::text, c.relkind in ('r', 'p')
from pg_catalog.pg_class c
join pg_catalog.pg_namespace n
  on n.oid = c.relnamespace
where n.nspname = $2
  and c.relname = any ($1::text[])
