"""State of one group between two decisions: its capacity, its forecast, and the results of its moves.

Rows and decisions change this state, which is stepped from outside. Reading a property changes nothing. `now` is an
argument, and code that may fail or hang is called through `Caller`: nothing here reads a clock, logs, starts a thread,
or reaches a file or a network.
"""
