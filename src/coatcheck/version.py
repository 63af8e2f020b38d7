"""The version that the distribution names; known without importing anything heavy."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("coatcheck")
except PackageNotFoundError:  # a source tree that was never installed
    VERSION = "0+unknown"
