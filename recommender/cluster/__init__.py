"""The rules of a Kubernetes cluster, without its client: what objects ask for, what their status says, who may publish.

May live here: ConsumerGroupScalers and their status, discovery of workloads, `doctor`, the law of the lease. The client
itself lives in `recommender.adapters`; nothing here decides how many replicas a group gets.
"""
