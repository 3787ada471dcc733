"""Pictures: pure functions of a table and a theme that return an option of ECharts, a dict that JSON can hold.

The page, a report in one file and a notebook draw the same dict. Nothing here reads a store, a clock or a file; what is
drawn comes in as messages of the wire or as values of the packages below. Only `html` reads files: those of the engine.
"""
