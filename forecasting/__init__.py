"""History in, quantile paths out: the expected produce rate and its uncertainty.

May live here: the definitions every package shares (`units`, `columns`, `refusal`), the history and forecast values,
one forecaster per file, their scores and backtest. Pure: nothing here reads a clock, a file, a socket or a global, and
nothing here imports Spark, Kafka, Kubernetes or HTTP.
"""
