-- purpose: which database this is, whatever address it is reached at
-- guard: reads only
-- index: none, one row
select installation_id from coatcheck.installation
