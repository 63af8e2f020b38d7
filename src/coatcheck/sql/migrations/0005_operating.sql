-- What a person asks of a message that was set aside, and what became of the wish to cancel a remote job.
-- oldest code: 0004, because code before it neither needs nor hinders what is kept here.

alter table coatcheck.outbox
  add column last_error text,
  add column first_leased_at timestamptz,
  add column last_leased_at timestamptz;
comment on column coatcheck.outbox.last_error is
  'How the last lease that ended badly ended: the class of the error, never its text, or lease_ended where nothing was reported.';
comment on column coatcheck.outbox.first_leased_at is
  'The first of the leases that lease_count counts; last_leased_at is the last.';
-- messages whose leases keep ending without a word may take their worker with them: few, and looked for with every claim
create index outbox_suspect_idx on coatcheck.outbox (provider, action, visible_at)
  where parked_at is null and leased_by is not null and lease_count >= 2;

-- every row that is there fulfils it, so none has to be read under the lock
alter table coatcheck.operations
  add column cancel_answer text,
  add constraint operations_cancel_answer
    check (cancel_answer is null or (cancel_answer in ('taken', 'refused') and cancel_requested_at is not null)) not valid;
comment on column coatcheck.operations.cancel_answer is
  'What the service answered to the wish to cancel: taken or refused, of which neither says what became of the job. Null: not passed on yet.';

select coatcheck.hand_over();
