-- What retention lets go is used again soon: large tables are vacuumed when a twentieth of them is dead, and not a fifth.
-- oldest code: 0006, because nothing but the time of a vacuum is changed.

-- measured at 5 million operations (21.5 GB): with 300,000 retired, a vacuum of history took 8.7 s, of each other table 1 to 4 s, and at a
-- thousand retired a second that is every five minutes; at PostgreSQL's own fifth, 4 GB would be dead first
alter table coatcheck.operations set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.specifications set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.dispatches set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.history set (autovacuum_vacuum_scale_factor = 0.05);
alter table coatcheck.deliveries set (autovacuum_vacuum_scale_factor = 0.05);
