"""The candidate plans, the cheapest of them, its certainty, and the remedies that would save money.

May live here: candidates, the dynamic program that proposes plans of several moves, the pricing of all of them through
`pricing`, and the results from the priced plans.
"""
