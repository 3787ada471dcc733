# ruff: noqa: INP001, T201 - a script is run, never imported, and prints
"""Downloads and builds the real parts of the live tests into the cache, one by one, in the order of their use.

A test that needs a part before it is built waits for it. A part that cannot be built is reported here, and the tests
that need it fail or are skipped.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from tests.live.harness.broker import fetched_jars
from tests.live.harness.browser import fetched_browser
from tests.live.harness.control_plane import built_control_plane
from tests.live.harness.exporters import fetched
from tests.live.harness.helm import built_helm
from tests.live.harness.images import built_images
from tests.live.harness.keda_processes import built_keda
from tests.live.harness.libraries import (
    built_go_members,
    built_prometheus_adapter,
    fetched_rollout_definition,
    made_strimzi_definitions,
)
from tests.live.harness.spark_operator_processes import built_spark_operator

PARTS: Mapping[str, Callable[[], Path]] = {
    "kafka": fetched_jars,
    "jmx-agent": partial(fetched, "jmx-agent"),
    "browser": fetched_browser,
    "prometheus": partial(fetched, "prometheus"),
    "control-plane": built_control_plane,
    "klag-exporter": partial(fetched, "klag-exporter"),
    "helm": built_helm,
    "keda": built_keda,
    "spark-operator": built_spark_operator,
    "go-members": built_go_members,
    "rollouts": fetched_rollout_definition,
    "strimzi": made_strimzi_definitions,
    "prometheus-adapter": built_prometheus_adapter,
    "images": built_images,
}


def main() -> None:
    """Build each part that is not in the cache."""
    for name, build in PARTS.items():
        began = time.monotonic()
        try:
            build()
        except RuntimeError as error:
            print(f"{name} is not there: {error}", flush=True)
        else:
            print(f"{name} is there after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
