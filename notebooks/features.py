# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Features: from samples to the table, with Spark
#
# The job of `lagcast features` and of `spark-submit`, on samples as a collector writes them. Only this notebook starts
# Spark; the others read what it makes, or the same from a simulated group.

# %%
import os
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import functions

from api.pictures.calendar import calendar
from api.pictures.notebook import Engine, Shown
from api.pictures.picture import Column
from api.pictures.skew import skew
from collector.sinks import write_table
from recommender.adapters.feature_table import FeatureTable
from replay.contest import PRICED, Contest, capacity_for
from replay.sampling import Names, samples_of
from replay.workload import orders_workload
from replay.world import World
from spark_features.batch import build_features
from spark_features.java import find_java
from spark_features.session import spark_session
from spark_features.transforms import latest_in_interval, with_names, with_offset_deltas

Engine()

# %% tags=["parameters"]
seed = 7
days = 3

# %%
folder = TemporaryDirectory(prefix="lagcast-")
samples, features = Path(folder.name) / "samples", Path(folder.name) / "features"
load = orders_workload(days=days, seed=seed)
world = World(partitions=24, capacity_messages_per_second_per_replica=capacity_for(load, partitions=24))
contest = Contest(trace=load, world=world, settings=PRICED, names=Names("demo", "orders"), seed=seed)
files = write_table(samples_of(contest.plant(), contest.names), samples)
print(f"{len(files)} files, {sum(file.stat().st_size for file in files) / 1e6:.1f} MB")

# %% [markdown]
# ## The job

# %%
spark = spark_session("notebook", java=find_java(os.environ), log_path=Path(folder.name) / "spark.log")
run = build_features(spark, samples, features)
print(f"{run.sample_rows:,} samples -> " + ", ".join(f"{rows:,} rows of {seconds} s" for seconds, rows in run.rows))

# %% [markdown]
# ## One step of the job by itself: what is produced into each partition

# %%
partitions = (
    spark.read.parquet(str(samples))
    .transform(latest_in_interval)
    .transform(with_offset_deltas)
    .transform(with_names)
    .groupBy("topic", "partition")
    .agg((functions.sum("produced_messages") / functions.sum("elapsed_seconds")).alias("rate"))
)
rates = [(f"{row.topic}-{row.partition}", row.rate) for row in partitions.collect()]
Shown(skew(rates, world.capacity_messages_per_second_per_replica))

# %% [markdown]
# ## The table, without Spark

# %%
spark.stop()
hours = FeatureTable(features).intervals(*contest.names, interval_seconds=3600)
rate = Column(name="produce_messages_per_second", title="Produce rate, messages/s")
measured = [(row.interval_end_at, row.produce_messages_per_second) for row in hours]
Shown(calendar(measured, rate, title="When load comes"))
