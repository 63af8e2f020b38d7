-- purpose: begin the log anew, so that what is measured pays for its own images of pages only
-- guard: none
-- index: none
checkpoint
