-- purpose: forget the operations that were measured, with all that is kept of each
-- guard: only where nobody else's are among them, under the lock of the table
-- index: none: the files of the tables are replaced
truncate coatcheck.operations, coatcheck.specifications, coatcheck.outbox, coatcheck.dispatches, coatcheck.remote_jobs,
  coatcheck.snapshots, coatcheck.deliveries, coatcheck.history, coatcheck.incidents
