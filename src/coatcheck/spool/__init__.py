"""Ends of POSTs on this host's disk, for as long as no database has them. What is in a spool was paid for: nothing here is deleted unsaved."""
