-- What retention lets go is used again soon: large tables are vacuumed when a twentieth of them is dead, and not a fifth.
-- oldest code: 0006, because nothing but the time of a vacuum is changed.

-- measured at 5 million operations: with 300,000 retired, a vacuum by hand took 8.7 s for history and 1.2 to 4.2 s for each other of these; at
-- a thousand retired a second a twentieth is reached every four minutes, PostgreSQL's own fifth every seventeen
alter table coatcheck.operations set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.specifications set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.dispatches set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.history set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.deliveries set (autovacuum_vacuum_scale_factor = 0.05);
