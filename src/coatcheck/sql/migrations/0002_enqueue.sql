-- The one way in: an intent and its first message, in the caller's own transaction, from any language.

create function coatcheck.new_id() returns uuid
  language sql volatile
  as $$
select encode(
  set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid())
      placing substring(int8send((extract(epoch from coatcheck.lease_now()) * 1000)::bigint) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;
comment on function coatcheck.new_id() is 'A version 7 UUID (RFC 9562): time-ordered, so that new rows land at the right end of an index.';

create function coatcheck.operation_text(operation_id uuid) returns text
  language plpgsql immutable strict parallel safe
  as $$
declare
  bits bit(130) := b'00' || ('x' || replace(operation_id::text, '-', ''))::bit(128);
  written text := 'op_';
begin
  for i in 0..25 loop
    written := written
      || substr('0123456789abcdefghjkmnpqrstvwxyz', 1 + substring(bits from 1 + 5 * i for 5)::bit(5)::integer, 1);
  end loop;
  return written;
end
$$;
comment on function coatcheck.operation_text(uuid) is 'The text form of an operation id: op_ and 26 characters of Crockford''s base 32.';

create function coatcheck.is_json(candidate text) returns boolean
  language plpgsql immutable strict parallel safe
  as $$
begin
  perform candidate::json;
  return true;
exception when others then
  return false;
end
$$;

create function coatcheck.is_instant(candidate text) returns boolean
  language plpgsql stable strict parallel safe
  as $$
begin
  return candidate ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}(:?[0-9]{2})?)$'
    and isfinite(candidate::timestamptz);
exception when others then
  return false;
end
$$;

create function coatcheck.enqueue_refusal(request jsonb) returns text
  language plpgsql stable
  set search_path = pg_catalog, coatcheck, pg_temp
  as $$
declare
  unknown jsonb;
begin
  if request is null or jsonb_typeof(request) <> 'object' then
    return 'the request must be one JSON object';
  end if;
  unknown := request - array['v', 'tenant_id', 'operation_key', 'provider', 'specification_text', 'estimate', 'unit', 'priority',
    'not_before_at', 'dispatch_by_at'];
  if unknown <> '{}' then
    return format('unknown field %s: this is version 1 of the request',
      left((select string_agg(key, ', ' order by key) from jsonb_object_keys(unknown) as key), 200));
  end if;
  if request -> 'v' is distinct from '1'::jsonb then
    return 'v must be the number 1';
  end if;
  if jsonb_typeof(request -> 'tenant_id') is distinct from 'string'
    or octet_length(request ->> 'tenant_id') not between 1 and 255 then
    return 'tenant_id must be a string of 1 to 255 bytes';
  end if;
  if jsonb_typeof(request -> 'operation_key') is distinct from 'string'
    or octet_length(request ->> 'operation_key') not between 1 and 255 then
    return 'operation_key must be a string of 1 to 255 bytes';
  end if;
  if jsonb_typeof(request -> 'provider') is distinct from 'string'
    or octet_length(request ->> 'provider') > 63 or request ->> 'provider' !~ '^[a-z][a-z0-9]*(_[a-z0-9]+)*$' then
    return 'provider must be a configured name: a lower-case letter, then up to 62 letters, digits or single underscores';
  end if;
  if jsonb_typeof(request -> 'specification_text') is distinct from 'string'
    or octet_length(request ->> 'specification_text') not between 1 and 1048576 then
    return 'specification_text must be a JSON string that holds the RFC 8785 text, 1 to 1048576 bytes';
  end if;
  if not is_json(request ->> 'specification_text') then
    return 'specification_text must hold a JSON text';
  end if;
  if coalesce(jsonb_typeof(request -> 'estimate'), 'null') <> 'null' and not (
    jsonb_typeof(request -> 'estimate') in ('number', 'string')
    and request ->> 'estimate' ~ '^[0-9]{1,18}(\.[0-9]{1,12})?$') then
    return 'estimate must be a decimal amount from 0 to below 10^18 with at most 12 decimals';
  end if;
  if coalesce(jsonb_typeof(request -> 'unit'), 'null') <> 'null' and not (
    jsonb_typeof(request -> 'unit') = 'string' and octet_length(request ->> 'unit') between 1 and 32) then
    return 'unit must be a string of 1 to 32 bytes';
  end if;
  if coalesce(jsonb_typeof(request -> 'priority'), 'null') <> 'null' and not (
    jsonb_typeof(request -> 'priority') = 'number' and request ->> 'priority' ~ '^-?[0-9]{1,4}$') then
    return 'priority must be a whole number from -9999 to 9999';
  end if;
  if coalesce(jsonb_typeof(request -> 'not_before_at'), 'null') <> 'null' and not (
    jsonb_typeof(request -> 'not_before_at') = 'string' and is_instant(request ->> 'not_before_at')) then
    return 'not_before_at must be an ISO 8601 instant with an offset';
  end if;
  if coalesce(jsonb_typeof(request -> 'dispatch_by_at'), 'null') <> 'null' and not (
    jsonb_typeof(request -> 'dispatch_by_at') = 'string' and is_instant(request ->> 'dispatch_by_at')) then
    return 'dispatch_by_at must be an ISO 8601 instant with an offset';
  end if;
  return null;
end
$$;
comment on function coatcheck.enqueue_refusal(jsonb) is 'Why a request cannot be enqueued, or null: every cast of enqueue_v1 is checked here first.';

create function coatcheck.enqueue_v1(request jsonb) returns jsonb
  language plpgsql volatile security definer
  set search_path = pg_catalog, coatcheck, pg_temp
  as $$
declare
  refusal text := enqueue_refusal(request);
  -- plain values: two expressions to look up by seem dearer than one, and the planner would walk all of a tenant's rows instead
  tenant text := request ->> 'tenant_id';
  key text := request ->> 'operation_key';
  destination text := request ->> 'provider';
  specification text := request ->> 'specification_text';
  hash bytea;
  new_operation_id uuid;
  created boolean;
  at timestamptz;
  due timestamptz;
  stored record;
begin
  if refusal is not null then
    return jsonb_build_object('result', 'refused', 'reason', refusal);
  end if;
  hash := sha256(convert_to(specification, 'UTF8'));
  new_operation_id := new_id();
  at := lease_now();
  due := greatest(at, (request ->> 'not_before_at')::timestamptz);
  insert into operations (operation_id, tenant_id, operation_key, provider, specification_hash, authorised_by, estimate, unit,
      priority, not_before_at, dispatch_by_at, created_at, updated_at)
    select new_operation_id, tenant, key, destination, hash, session_user,
      coalesce((request ->> 'estimate')::numeric, configured.default_estimate),
      coalesce(request ->> 'unit', configured.unit, 'credits'), coalesce((request ->> 'priority')::smallint, 0),
      (request ->> 'not_before_at')::timestamptz, (request ->> 'dispatch_by_at')::timestamptz, at, at
    from (select) as one_row left join providers as configured on configured.name = destination
    on conflict (tenant_id, operation_key) do nothing;
  get diagnostics created = row_count;
  if created then
    insert into specifications (operation_id, specification_text)
      values (new_operation_id, specification);
    insert into history (operation_id, revision, event, actor, at, to_phase, to_render_state, to_delivery_state)
      values (new_operation_id, 0, 'generation_requested', session_user, at, 'prepared', 'none', 'not_started');
    insert into outbox (operation_id, lane, action, provider, expected_revision, visible_at)
      values (new_operation_id, 0, 'dispatch', destination, 0, due);
    if exists (select from wake_ups where sleeping_until > due_now()) then
      perform pg_notify('coatcheck', '');
    end if;
  end if;
  -- a second statement: within the inserting one, a row committed by the winner of a race is not visible
  select operations.operation_id, provider, specification_hash, revision, phase into strict stored
    from operations
    where tenant_id = tenant and operation_key = key;
  return jsonb_build_object(
    'result', case
      when created then 'created'
      when stored.specification_hash = hash and stored.provider = destination then 'existing'
      else 'key_reused' end,
    'operation_id', operation_text(stored.operation_id),
    'revision', stored.revision,
    'phase', stored.phase,
    'specification_hash', encode(stored.specification_hash, 'hex'));
end
$$;
comment on function coatcheck.enqueue_v1(jsonb) is
  'Enqueue in the caller''s transaction. Same key, specification and provider: the same operation. Never raises on data.';
