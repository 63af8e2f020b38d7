-- purpose: let the planner know what is there, as autovacuum would a little later
-- guard: none
-- index: none
vacuum (analyze) coatcheck.operations, coatcheck.specifications, coatcheck.outbox
