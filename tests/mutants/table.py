"""All mutants."""

from mutants import of_code, of_statements

MUTANTS = (*of_statements.MUTANTS, *of_code.MUTANTS)
