"""A fleet of consumer groups beside one recommender, in life: what it costs, and how old its advice is."""
