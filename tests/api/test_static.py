"""What the page loads comes from the project alone, and is what it says it is."""

import json
from hashlib import sha256
from pathlib import Path

STATIC = Path(__file__).parents[2] / "api" / "static"


def test_the_drawing_engine_is_the_file_whose_version_and_checksum_stand_beside_it() -> None:
    about = json.loads((STATIC / "echarts" / "version.json").read_text())
    engine = (STATIC / "echarts" / about["file"]).read_bytes()
    assert sha256(engine).hexdigest() == about["sha256"]
    assert f'version="{about["version"]}"'.encode() in engine
