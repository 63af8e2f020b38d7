"""Settings are one frozen value, parsed once and handed down: nothing else reads the environment or a file of settings."""

from coatcheck.config.load import load_settings
from coatcheck.config.secret import Secret
from coatcheck.config.settings import (
    ConcurrencySettings,
    Endpoint,
    LeaseSettings,
    OutputHosts,
    ProviderSettings,
    Settings,
    Wake,
)

__all__ = [
    "ConcurrencySettings",
    "Endpoint",
    "LeaseSettings",
    "OutputHosts",
    "ProviderSettings",
    "Secret",
    "Settings",
    "Wake",
    "load_settings",
]
