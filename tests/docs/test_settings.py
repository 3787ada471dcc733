"""The settings page is made from the settings."""

import subprocess
import sys
from pathlib import Path

import yaml

from recommender.configuring.settings import load_settings

ROOT = Path(__file__).parents[2]


def test_every_setting_is_documented() -> None:
    """docs/settings.md is exactly what the settings describe of themselves; `make docs` rewrites it."""
    made = subprocess.run(
        [sys.executable, "scripts/settings_page.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (ROOT / "docs" / "settings.md").read_text() == made.stdout


def test_the_example_file_is_accepted(tmp_path: Path) -> None:
    """The YAML at the top of the page loads as it stands."""
    example = (ROOT / "docs" / "settings.md").read_text().split("```yaml\n")[1].split("```")[0]
    file = tmp_path / "lagcast.yaml"
    file.write_text(example)
    assert load_settings(file, {}).groups.keys() == yaml.safe_load(example)["groups"].keys()
