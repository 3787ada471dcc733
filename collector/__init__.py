"""Offset samples: readings of a group from Kafka, or Prometheus, written once and never changed.

May live here: the sample type, the sources that produce it, the sinks that store it. Sources end at a sample. Imports
nothing of ours but `forecasting.units` and `forecasting.columns`.
"""
