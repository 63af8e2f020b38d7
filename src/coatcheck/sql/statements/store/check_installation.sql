-- purpose: where this is another server, timeline or table than the last time, pause the dispatch of every account, and remember it
-- guard: the one row is locked and compared again after the wait, so of many workers one does it; where nothing changed, nothing is written
-- index: none, one row
with moved as materialized (
  select held.only_row, here.system_identifier, here.timeline, here.made_as,
    %(promotion_is_safe)s::boolean and (held.system_identifier, held.made_as) = (here.system_identifier, here.made_as) as is_safe,
    case
      when held.system_identifier is distinct from here.system_identifier
        then format('another cluster: expected %%s, got %%s', held.system_identifier, here.system_identifier)
      when held.made_as is distinct from here.made_as then 'the tables were made anew in this cluster'
      else format('promoted: expected timeline %%s, got %%s', held.timeline, here.timeline) end as told
  from coatcheck.installation as held
  cross join coatcheck.whereabouts() as here
  where (held.system_identifier, held.timeline, held.made_as)
    is distinct from (here.system_identifier, here.timeline, here.made_as)
  for no key update of held
),
noted as (
  update coatcheck.installation as held set
    system_identifier = moved.system_identifier,
    timeline = moved.timeline,
    made_as = moved.made_as,
    changed_at = coatcheck.lease_now(),
    restored_at = case when moved.is_safe then held.restored_at else coatcheck.lease_now() end,
    restored_reason = case when moved.is_safe then held.restored_reason else moved.told end
  from moved
  where held.only_row = moved.only_row
),
affected as materialized (
  select held.name, moved.told
  from coatcheck.providers as held
  join moved on not moved.is_safe
  order by held.name
  for no key update of held
),
-- a pause that was there keeps its beginning and whose it is, and tells both: whoever ends it for its old reason reads the new one
paused as (
  update coatcheck.providers as provider set
    dispatch_paused_at = coalesce(provider.dispatch_paused_at, coatcheck.lease_now()),
    dispatch_pause_reason = 'restored: ' || affected.told || coalesce(
      substring(provider.dispatch_pause_reason from '; paused before: .*'),
      case when provider.dispatch_pause_reason not like 'restored: %%' then '; paused before: ' || provider.dispatch_pause_reason end,
      ''),
    dispatch_paused_by = coalesce(provider.dispatch_paused_by, %(worker)s::text)
  from affected
  where provider.name = affected.name
  returning provider.name
)
select moved.told, moved.is_safe, (select count(*) from paused) as paused_count
from moved
