"""REST and its wire schemas. `schemas` imports nothing of ours, so that a consumer of advice needs nothing else."""
