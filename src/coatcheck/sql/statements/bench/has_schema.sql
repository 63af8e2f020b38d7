-- purpose: whether there is a schema whose tables somebody may use
-- guard: none: reading decides nothing
-- index: none: the catalogue
select to_regclass('coatcheck.operations') is not null as has_schema
