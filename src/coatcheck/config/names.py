"""How things are named, said once: the environment variables of settings, providers, and hosts.

Patterns are text, compiled where they are used: compiling them all costs every short command 3 ms.
"""

from typing import Final

PREFIX: Final = "COATCHECK_"
DELIMITER: Final = "__"
PROVIDERS: Final = "providers"
PROVIDER_NAME: Final = r"(?=.{1,63}$)[a-z][a-z0-9]*(?:_[a-z0-9]+)*"
"""Twice an underscore separates the parts of a variable's name, so a provider's name cannot hold it. `coatcheck.enqueue_v1` says the same."""

HOST_NAME: Final = r"(?=.{1,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
"""A host in lower case, each label of at most 63 characters; underscores are met in front."""


def variable(*key: str) -> str:
    """The environment variable of a setting, as `variable("providers", "genace", "api_key")`."""
    return PREFIX + DELIMITER.join(key).upper()


def provider_variable(provider: str, setting: str) -> str:
    """The environment variable of a provider's setting, as `provider_variable("genace", "API_KEY")`."""
    return variable(PROVIDERS, provider, setting)
