"""The rules of a Kubernetes cluster, without its client: requests of objects, their status, and who may publish.

May live here: ConsumerGroupScalers and their status, discovery of workloads, `doctor`, the rules of the lease. The
client itself lives in `recommender.adapters`; nothing here decides how many replicas a group gets.
"""
