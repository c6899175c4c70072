"""All that speaks with Ray, by its public functions: workers in other processes and machines."""

import os

# Before ray is imported, since it reads these once: no usage statistics, and no warning about how
# a later Ray will treat accelerators, which no actor here asks for.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
