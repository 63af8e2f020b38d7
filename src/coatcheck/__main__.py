"""`python -m coatcheck` is the command line."""

import sys

from coatcheck.cli import main

if __name__ == "__main__":
    sys.exit(main())
