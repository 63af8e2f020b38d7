-- purpose: one message by its address, for the person who takes it up
-- guard: none: reading decides nothing, what follows names the operation's revision
-- index: outbox_pkey, operations_pkey
select
-- include: message_columns
-- include: message_sources
where held.operation_id = %(operation_id)s::uuid and held.lane = %(lane)s::smallint
