"""The candidate plans, the cheapest of them, its certainty, and the remedies that would save money.

May live here: candidates, the dynamic program that proposes plans of several moves, the weighing of all of them by
`pricing`, and what is read from the weighed plans.
"""
