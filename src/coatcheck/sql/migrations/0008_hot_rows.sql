-- Rows that change often stay where they are: what an index asks of a dispatch no longer changes with its usual end, and pages keep room.
-- oldest code: 0006, because what is added is derived from what every version writes, and nothing is taken away.

-- an index on the outcome itself made each end of a POST a new row in four indexes (measured: 0.7 kB of log for each operation)
drop index coatcheck.dispatches_authorisation_idx;
drop index coatcheck.dispatches_doubt_idx;
alter table coatcheck.dispatches
  -- read as it was written, and never searched: as text it is half as long
  alter column marks_ms type json,
  add column spends boolean not null generated always as (outcome not in ('not_sent', 'throttled', 'proven_absent') and not displaced) stored,
  add column is_doubted boolean not null generated always as (outcome = 'uncertain') stored;
comment on column coatcheck.dispatches.spends is
  'Whether it uses its authorisation up. From the mark to a known job this stays, so the row need not move.';
comment on column coatcheck.dispatches.is_doubted is
  'Whether it ended in a doubt that nothing has decided. One under way is found by its lane.';
-- money is spent at most once per authorisation: the last wall behind the mark's own guard
create unique index dispatches_authorisation_idx on coatcheck.dispatches (operation_id, authorisation) where spends;
create index dispatches_doubt_idx on coatcheck.dispatches (account, begun_at) where is_doubted;

-- what stays of a delivery stands before what changes, so that the log of a change begins there
alter table coatcheck.deliveries
  drop constraint deliveries_state,
  drop constraint deliveries_delivered;
alter table coatcheck.deliveries rename column state to state_before;
alter table coatcheck.deliveries add column state text not null default 'pending';
update coatcheck.deliveries set state = state_before where state_before <> 'pending';
alter table coatcheck.deliveries
  drop column state_before,
  add constraint deliveries_state check (state in ('pending', 'delivered', 'failed')),
  add constraint deliveries_delivered check ((state = 'delivered')
    = (uri is not null and sha256 is not null and bytes is not null));

comment on column coatcheck.snapshots.outputs is 'What versions before 0008 noted; deliveries has each output with all that was said of it.';

-- a batch changes all rows of a page at once, so a page has room for as much again (measured with batches of 200: 33 to 68 % of the
-- updates found no room before)
alter table coatcheck.operations set (fillfactor = 45);
alter table coatcheck.outbox set (fillfactor = 40);
alter table coatcheck.deliveries set (fillfactor = 60);
-- the end of its POST makes a row two to three times as long
alter table coatcheck.dispatches set (fillfactor = 45);

select coatcheck.hand_over();
