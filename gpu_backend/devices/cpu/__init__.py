"""The CPU device: CuPy's surface and behaviour on NumPy and SciPy.

`table` maps public names to callables; the area modules fill it; `device` is the seam's face.
"""
