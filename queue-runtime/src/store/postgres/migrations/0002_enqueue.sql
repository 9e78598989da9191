-- Enqueues a job from any language that speaks to this database, in the caller's own transaction:
--
--   select * from queue.enqueue('send_welcome', '{"user_id": 42, "email": "ada@example.org"}');
--
-- What the compiler checks for a program in Rust, nobody checks here: the name of the job type and
-- the fields of the payload have to be those of its declaration, or the job becomes a dead letter
-- when it is run. Names, sizes and bounds are checked, with the same rules.
--
-- A live job of the type with the same dedupe key answers for the new one, which is then not
-- stored. If another open transaction has just stored that key, this waits for its end. The
-- caller's commit tells the workers, for which the server lets only one commit through at a time;
-- with notify => false they find the job at their next poll.
create function {q}.enqueue(
  job_type text,
  payload json default '{}',
  queue text default 'default',
  delay interval default null,
  run_at timestamptz default null,
  priority integer default 0,
  max_attempts integer default 5,
  deadline interval default null,
  dedupe_key text default null,
  payload_schema integer default 1,
  trace_context text default null,
  notify boolean default true
)
returns table (id uuid, duplicate boolean)
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  now constant timestamptz := date_trunc('milliseconds', statement_timestamp());
  new_id uuid;
  due timestamptz;
begin
  if enqueue.job_type !~ '^[A-Za-z0-9._:/-]{1,120}$' or enqueue.job_type is null then
    raise exception 'job type %: must be 1-120 characters of A-Za-z0-9._:-/', quote_nullable(enqueue.job_type)
      using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.queue !~ '^[a-z0-9._-]{1,63}$' or enqueue.queue is null then
    raise exception 'queue name %: must be 1-63 characters of a-z0-9._-', quote_nullable(enqueue.queue)
      using errcode = 'invalid_parameter_value';
  end if;
  if json_typeof(enqueue.payload) is distinct from 'object' then
    raise exception 'payload of job type %: must be a JSON object with the fields of the job', enqueue.job_type
      using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(enqueue.payload::text) > 1048576 then
    raise exception 'payload of job type % has % bytes: at most 1048576 are allowed',
      enqueue.job_type, octet_length(enqueue.payload::text)
      using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.priority not between -100 and 100 or enqueue.priority is null then
    raise exception 'priority %: must be -100 to 100', enqueue.priority
      using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.max_attempts not between 1 and 1001 or enqueue.max_attempts is null then
    raise exception 'max_attempts %: must be 1 to 1001', enqueue.max_attempts
      using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.payload_schema < 0 or enqueue.payload_schema is null then
    raise exception 'payload_schema %: must not be negative', enqueue.payload_schema
      using errcode = 'invalid_parameter_value';
  end if;
  if octet_length(enqueue.dedupe_key) not between 1 and 1024 then
    raise exception 'dedupe_key: must be 1-1024 bytes; leave it out for no key'
      using errcode = 'invalid_parameter_value';
  end if;
  due := greatest(now, enqueue.run_at, now + enqueue.delay);
  if due > now + interval '3653 days' then
    raise exception 'due at %: must be at most ten years ahead', due
      using errcode = 'invalid_parameter_value';
  end if;
  if enqueue.deadline <= interval '0' or enqueue.deadline > interval '3653 days' then
    raise exception 'deadline %: must be more than nothing and at most ten years', enqueue.deadline
      using errcode = 'invalid_parameter_value';
  end if;

  -- A UUID of version 7 (RFC 9562): milliseconds since 1970 in 48 bits, then random bits, here
  -- those of a version 4, whose variant it shares.
  select (
      lpad(to_hex((extract(epoch from clock_timestamp()) * 1000)::bigint), 12, '0')
      || '7' || substr(random.hex, 1, 3) || substr(random.hex, 17)
    )::uuid
  into new_id
  from (select replace(gen_random_uuid()::text, '-', '') as hex) random;

  -- The holder of a key may end between two looks, so look until one of both has an answer.
  loop
    insert into {q}.jobs as j (
      id,
      job_type,
      queue,
      payload_schema,
      status,
      priority,
      max_attempts,
      run_at,
      dedupe_key,
      deadline,
      trace_context,
      created_at,
      updated_at,
      payload
    )
    values (
      new_id,
      enqueue.job_type,
      enqueue.queue,
      enqueue.payload_schema,
      'queued',
      enqueue.priority,
      enqueue.max_attempts,
      due,
      enqueue.dedupe_key,
      now + enqueue.deadline,
      enqueue.trace_context,
      now,
      now,
      enqueue.payload::text
    )
    on conflict (job_type, dedupe_key, dedupe_slot) where dedupe_key is not null do nothing;
    if found then
      if enqueue.notify then
        -- Heard by all workers at the commit of the caller's transaction.
        perform pg_notify('queue_' || m.value, '')
        from {q}.meta m
        where m.name = 'store_id';
      end if;
      return query select new_id, false;
      return;
    end if;
    return query
      select j.id, true
      from {q}.jobs j
      where j.job_type = enqueue.job_type
        and j.dedupe_key = enqueue.dedupe_key
        and j.dedupe_slot = 0;
    if found then
      return;
    end if;
    if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
      raise exception 'dedupe key: another transaction stored it meanwhile. Try again'
        using errcode = 'serialization_failure';
    end if;
  end loop;
end
$$;
