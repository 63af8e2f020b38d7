"""The composition root: the only room that chooses implementations and hands them to the rest."""
