# ruff: noqa: INP001 - a script is run, never imported
"""Writes docs/settings.md from the settings themselves: `python scripts/settings_page.py > docs/settings.md`."""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from recommender.configuring.settings import Settings

HEAD = """\
# Settings

One YAML file (`--config FILE`) and the environment; the environment wins. A key `decision.max_lag_seconds` is the
variable `LAGCAST_DECISION__MAX_LAG_SECONDS`. Unknown keys and values out of range stop the command with one sentence,
exit code 2. Every setting has a default, which what is seen of a group may replace (`lagcast explain` says so).
`lagcast config show --config FILE` prints what is in force, and for each value who has set it. This file is complete:

```yaml
groups:
  orders-consumer:
    capacity_messages_per_second_per_replica: 1200
    protocol: cooperative
    max_replicas: 24
    holidays:
      country: DE
      subdivision: BY
      dates: [2026-12-24, 2026-12-31]
decision:
  price_per_replica_hour: 0.04
  max_lag_seconds: 10
  windows:
    - {schedule: "0 22 * * 5", duration_seconds: 14400, time_zone: Europe/Berlin}
```

This page is made by `make docs` from the settings' own descriptions.
"""


def page() -> str:
    """The whole page: one table for each group of settings."""
    schema = Settings.model_json_schema()
    parts = schema["$defs"]
    tables = [
        ("Top level", "", schema["properties"]),
        ("Decision: `decision.`", "decision.", _fields(parts, "DecisionSettings")),
        ("Windows: each of `decision.windows`", "", _fields(parts, "Window")),
        ("Groups: `groups.NAME.`", "groups.NAME.", _fields(parts, "GroupSettings")),
        ("Streams: `groups.NAME.streams.`", "groups.NAME.streams.", _fields(parts, "StreamsSettings")),
        ("Holidays: `groups.NAME.holidays.`", "groups.NAME.holidays.", _fields(parts, "HolidaySettings")),
        ("Target: `groups.NAME.target.`", "groups.NAME.target.", _fields(parts, "TargetSettings")),
        ("To zero: `groups.NAME.scale_to_zero.`", "groups.NAME.scale_to_zero.", _fields(parts, "ScaleToZeroSettings")),
    ]
    return HEAD + "".join(f"\n## {title}\n\n{''.join(rows(prefix, fields))}" for title, prefix, fields in tables)


def _fields(parts: Mapping[str, Mapping[str, Any]], name: str) -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = parts[name]["properties"]
    return found


def rows(prefix: str, fields: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A Markdown table, one row for each setting."""
    yield "| Setting | Default | Meaning |\n|---|---|---|\n"
    for name, field in fields.items():
        default = field.get("default")
        # Whole groups of settings have their own tables.
        shown = (
            ""
            if default in (None, "") or isinstance(default, dict | list)
            else f"`{json.dumps(default).strip(chr(34))}`"
        )
        meaning = " ".join(field.get("description", "").split()).replace("|", "\\|")
        yield f"| `{prefix}{name}` | {shown} | {meaning} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
