"""What a session has on its device: entries by handle, of what kind they are, and who holds their memory."""

from gpu_backend.executor.heap.entries import Failure, Kind
from gpu_backend.executor.heap.holders import Ownership
from gpu_backend.executor.heap.places import MOST_SPARE_BYTES, Place, Places
from gpu_backend.executor.heap.table import Heap

__all__ = ["MOST_SPARE_BYTES", "Failure", "Heap", "Kind", "Ownership", "Place", "Places"]
