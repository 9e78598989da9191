-- Reads how many connections the server leaves this role on this database, all programs together.
-- only: SQLite has no server.
-- params: none
-- returns: one row (the number)
-- locks: nothing
-- index: the catalogue's own
select least(
  pg_catalog.current_setting('max_connections')::bigint
    - pg_catalog.current_setting('superuser_reserved_connections')::bigint,
  (
    select nullif(rolconnlimit, -1)::bigint
    from pg_catalog.pg_roles
    where rolname = current_user
  ),
  (
    select nullif(datconnlimit, -1)::bigint
    from pg_catalog.pg_database
    where datname = pg_catalog.current_database()
  )
)
