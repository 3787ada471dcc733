"""One decision about one group, from its rows and its forecast to a recommendation or a refusal.

Pure: no I/O, no clock, no thread, no log; `now` is an argument. `context` holds the inputs of one decision and is built
once; modules import only modules below them: recommend > compose > planned, zero > guards > proposal > context > rows.
"""
