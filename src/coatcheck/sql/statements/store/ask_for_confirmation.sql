-- purpose: make the commit of a transaction that may have written nothing one that a standby must confirm, and with it all before it
-- guard: none: it is a message to nobody, gone with the log
-- index: none
select pg_catalog.pg_logical_emit_message(true, 'coatcheck', '') as position
