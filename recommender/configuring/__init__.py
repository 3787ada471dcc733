"""Settings: one YAML file and the environment in, checked values out; nothing else reads either.

May live here: what may be set, for all groups and for one, and what may be wrong with it. Not here: what it does.
"""
