"""P21: what a browser is given by lagcast loads nothing from anywhere else."""

import json
import re

from manifests.dashboard import dashboard

ORIGIN = re.compile(r"""(?:https?:)?//[\w.-]+""")


def test_p21_the_dashboard_names_no_origin() -> None:
    """No panel, link or plug-in of the dashboard has an address: all of it is asked of the reader's own Grafana."""
    assert ORIGIN.findall(json.dumps(dashboard())) == []
