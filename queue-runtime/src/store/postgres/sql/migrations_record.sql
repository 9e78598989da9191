-- Records a schema change.
-- params: $1 version, $2 name, $3 oldest library version that can serve the schema after it
-- returns: nothing
-- locks: runs inside the migrating transaction
-- index: primary key
insert into {q}.migrations (
  version,
  name,
  compatible_from
)
values (
  $1,
  $2,
  $3
)
