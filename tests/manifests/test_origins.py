"""P21: what a browser is given by lagcast loads nothing from anywhere else."""

import json
import re
from typing import get_args

import pytest

from manifests.dashboard import Name, dashboard

ORIGIN = re.compile(r"""(?:https?:)?//[\w.-]+""")


@pytest.mark.parametrize("name", get_args(Name))
def test_p21_a_dashboard_names_no_origin(name: Name) -> None:
    """No panel, link or plug-in of a dashboard has an address: all of it is asked of the reader's own Grafana."""
    assert ORIGIN.findall(json.dumps(dashboard(name))) == []
