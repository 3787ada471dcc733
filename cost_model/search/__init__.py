"""Which plans there are, which one is the cheapest, how sure that is, and what else would save money.

May live here: candidates, the dynamic program that proposes plans of several moves, the weighing of all of them by
`pricing`, and what is read from the weighed plans.
"""
