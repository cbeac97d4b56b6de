"""Networks, and the one masked distribution."""

import os

# Waiting threads sleep instead of spinning: on a machine that does anything else besides, spinning
# threads take the time of the ones they wait for. Takes effect if torch is not loaded yet.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
