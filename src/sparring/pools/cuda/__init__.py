"""Games stepped together on a GPU."""

from sparring.pools.cuda.pool import BLOCK, SOURCE, CudaPool
from sparring.pools.cuda.sizes import sizes_of

__all__ = ["BLOCK", "SOURCE", "CudaPool", "sizes_of"]
