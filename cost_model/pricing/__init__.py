"""A plan in, an itemised price out: the rollout that plays plans through scenarios, and what its messages cost.

May live here: the prices, the situation that a decision starts from, what moves do as arrays, and the compiled loop
whose prices are published. Which plans there are is none of its business: nothing of `search` is imported.
"""
