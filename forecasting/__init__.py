"""History in, quantile paths out: what will be produced, and how sure we are.

May live here: the words every package shares (`units`, `columns`, `refusal`), the history and forecast values, one
forecaster per file, their scores and backtest. Pure: nothing here reads a clock, a file, a socket or a global, and
nothing here knows Spark, Kafka, Kubernetes or HTTP.
"""
