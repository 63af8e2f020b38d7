"""Remote services: adapters turn values into values; `wire` sends the one POST, `http` the GETs. Nobody else talks to a service."""
