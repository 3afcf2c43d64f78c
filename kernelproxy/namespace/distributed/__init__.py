"""``cupyx.distributed.array``: one array whose chunks are on several devices of a session, as CuPy has it.

The notebook knows which chunk holds what; each chunk is an ordinary remote array of one device, and what passes between
devices goes from one to the other. `distributed_array` is what users see, `indices`, `modes` and `chunks` are what it
is made of, `elementwise`, `reductions` and `products` what is computed.
"""
