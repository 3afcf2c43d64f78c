"""From a call on CuPy's surface to an op, and from an answer to an object."""
