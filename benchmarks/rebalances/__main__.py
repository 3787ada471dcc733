"""`python -m benchmarks.rebalances`."""

import sys

from benchmarks.rebalances.run import main

sys.exit(main())
