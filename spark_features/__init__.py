"""The PySpark job: offset samples in, `group_intervals` (and rollups) out.

The only home of pyspark. DataFrame functions only; no Python UDF; nothing starts a session at import. Imports nothing
of ours but `forecasting.units` and `forecasting.columns`.
"""
