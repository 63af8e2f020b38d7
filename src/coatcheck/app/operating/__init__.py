"""What a person asks for while everything runs: cancel, look again, deliver again, take up what was set aside. None of it sends anything.

Only `operator` is for others: it adds these to the decisions about what is in doubt.
"""
