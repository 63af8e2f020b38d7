"""Handlers of messages. Each reads as a list of verbs: load, check, mark, call, decide, save."""
