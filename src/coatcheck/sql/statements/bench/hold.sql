-- purpose: let nobody enqueue between a look at the operations and their clearing
-- guard: ends with the transaction
-- index: none
lock table coatcheck.operations in access exclusive mode
