"""Games stepped together on a GPU."""

from sparring.pools.cuda.pool import SOURCE, CudaPool
from sparring.pools.cuda.sizes import BLOCK, sizes_of

__all__ = ["BLOCK", "SOURCE", "CudaPool", "sizes_of"]
