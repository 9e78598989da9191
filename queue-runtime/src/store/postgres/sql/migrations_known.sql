-- Says whether this database has the schema, and a list of its changes in it.
-- params: $1 the schema's name
-- returns: one row (whether there is the schema, whether there is the list)
-- locks: nothing
-- index: the catalogue's own
select
  exists (
    select 1
    from pg_catalog.pg_namespace
    where nspname = $1
  ),
  exists (
    select 1
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n
      on n.oid = c.relnamespace
    where n.nspname = $1
      and c.relname = 'migrations'
      and c.relkind = 'r'
  )
