"""A plan in, an itemised price out: what it costs to stay, to move, and to move later.

May live here: capacity on the useful replica counts, what a rebalance stops and repeats, the backlog that follows,
prices, and the search for the cheapest plan. Physics first (messages, seconds, replica-seconds), money last and in one
place.
Pure: no clock, no file, no socket, no Spark, no Kafka client.
"""
