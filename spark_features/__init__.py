"""The PySpark job: from offset samples to `group_intervals` and rollups.

The only home of pyspark. DataFrame functions only; no Python UDF; nothing starts a session at import. Imports nothing
of ours but `forecasting.units` and `forecasting.columns`.
"""
