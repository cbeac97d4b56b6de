"""Beyond one process: actors that play for a learner, here or on other machines.

Imported only when it is asked for.
"""
