"""A plan in, an itemised price out: the cost of staying, of moving now, and of moving later.

May live here: capacity on the useful replica counts, the stops and repeats of a rebalance, the resulting backlog,
prices, and the search for the cheapest plan. Physics first (messages, seconds, replica-seconds), money last and in one
place.
Pure: no clock, no file, no socket, no Spark, no Kafka client.
"""
