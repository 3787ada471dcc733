"""`python -m benchmarks.decisions`."""

import sys

from benchmarks.decisions.run import main

sys.exit(main())
