"""The pure heart: an operation's life as values and one table. No I/O, clock, chance or logging in here."""
