-- Creates the list of the schema changes that this database has seen.
-- params: none
-- returns: nothing
-- locks: runs inside the migrating transaction
-- index: none
create table if not exists {q}migrations (
  version integer primary key,
  name text not null,
  applied_at integer not null,
  compatible_from integer not null
) strict
