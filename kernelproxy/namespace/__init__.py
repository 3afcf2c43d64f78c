"""The modules ``cupy`` and ``cupyx`` as the notebook sees them, built from the surface description."""
