-- Creates the list of the schema changes that this database has seen.
-- params: none
-- returns: nothing
-- locks: runs inside the migrating transaction
-- index: none
create table if not exists {q}.migrations (
  version bigint primary key,
  name text not null,
  applied_at timestamptz not null default statement_timestamp(),
  compatible_from bigint not null
)
