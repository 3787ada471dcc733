"""Offset samples: what Kafka, or Prometheus, says about a group, written down and never changed.

May live here: the sample type, the sources that produce it, the sinks that store it. Sources end at a sample. Imports
nothing of ours but `forecasting.units` and `forecasting.columns`.
"""
