"""The same workflow on coatcheck and on its peers, in one run: see README.md beside this file."""
