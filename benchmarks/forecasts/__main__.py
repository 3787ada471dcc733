"""`python -m benchmarks.forecasts`."""

import sys

from benchmarks.forecasts.run import main

sys.exit(main())
