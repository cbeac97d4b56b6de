"""Games stepped together on a GPU."""

from sparring.pools.cuda.pool import SOURCE, UNITS, CudaPool
from sparring.pools.cuda.sizes import sizes_of

__all__ = ["SOURCE", "UNITS", "CudaPool", "sizes_of"]
