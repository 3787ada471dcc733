"""The lab of ten groups: what lagcast finds out of consumer groups by itself, from the address of a Kafka alone."""
