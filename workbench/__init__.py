"""gpu-workbench: CuPy in JupyterLab on a GPU that a whole group shares."""

__version__ = "0.1.0"
