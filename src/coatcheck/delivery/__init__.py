"""The delivery room: bytes of one finished output, from a URL we do not trust into a sink that we do.

Nothing here knows the database, and nothing here can reach the call that costs money.
"""
