"""`doctor`."""
