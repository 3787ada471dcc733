"""The capacity of a group and the effects of a move: messages, seconds, partitions and bytes.

May live here: the profile of a group and estimates from its own past, capacity by replica count, the assignment of
partitions, the stops, repeats and restores of a rebalance, the resulting backlog. No price and no plan: nothing of
`pricing` or `search` is imported.
"""
