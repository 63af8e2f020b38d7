-- purpose: let the log keep images of whole pages again, as servers do
-- guard: of the whole server, so only where that is the measurement's
-- index: none
alter system reset full_page_writes
