"""Process groups, as ``cupyx.distributed`` has them: processes of one user that compute together.

Each has a session of its own, on whichever machine. They meet at the pool's gateway (`meeting`), which has a channel
opened between each two of their executors; by these pass the pieces of which everything is made (`exchange`): what
groups do with arrays (`dense`) and with sparse matrices (`sparse`). `backend` is what programs see.
"""
