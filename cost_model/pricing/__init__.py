"""A plan in, an itemised price out: the rollout that plays plans through scenarios, and the cost of its messages.

May live here: the prices, the situation that a decision starts from, the effects of moves as arrays, and the compiled
loop whose prices are published. It does not choose plans: nothing of `search` is imported.
"""
