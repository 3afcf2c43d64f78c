"""``python -m gpu_backend.executor DIR``: how an agent starts an executor."""

from gpu_backend.executor.process import main

main()
