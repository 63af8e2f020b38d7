-- purpose: let the log keep no images of whole pages
-- guard: of the whole server, so only where that is the measurement's
-- index: none
alter system set full_page_writes = off
