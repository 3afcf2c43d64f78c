"""CuPy's own tests, run unmodified through a pool and compared with the same tests on native CuPy."""
