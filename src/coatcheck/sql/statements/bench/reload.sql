-- purpose: have the server read its settings
-- guard: none
-- index: none
select pg_reload_conf() as is_told
