"""The capacity of a group and the effects of a move: messages, seconds, partitions and bytes.

May live here: the profile of a group and what its own past says about it, capacity by replica count, how partitions are
dealt out, what a rebalance stops, repeats and restores, the backlog that follows. No price and no plan: nothing of
`pricing` or `search` is imported.
"""
