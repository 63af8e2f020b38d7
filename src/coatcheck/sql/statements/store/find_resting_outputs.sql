-- purpose: the outputs of one operation that nobody tries to deliver any more: failed, or without a message that is live
-- guard: none: reading decides nothing, what follows names the operation's revision
-- index: deliveries_pkey, outbox_pkey
select delivery.output_index
from coatcheck.deliveries as delivery
left join coatcheck.outbox as held
  on held.operation_id = delivery.operation_id and held.lane = delivery.output_index + 1 and held.parked_at is null
where delivery.operation_id = %(operation_id)s::uuid and delivery.state <> 'delivered'
  and (delivery.state = 'failed' or held.operation_id is null)
order by delivery.output_index
