"""The list of the oracles: each of the fifteen has a test that bears its number."""

import re
from pathlib import Path

ORACLES = range(1, 16)


def test_every_oracle_has_a_test_by_its_number() -> None:
    """The oracles of the model are numbered 1 to 15; each number stands in the name of a test below this folder."""
    texts = [file.read_text(encoding="utf-8") for file in Path(__file__).parent.rglob("test_*.py")]
    tested = {int(number) for text in texts for number in re.findall(r"def test_oracle_(\d+)_", text)}
    assert tested == set(ORACLES)
