"""Settings: one YAML file and the environment in, checked values out; nothing else reads either.

May live here: the settings for all groups and for one, and their validation. Not here: their effects.
"""
