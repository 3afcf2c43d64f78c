"""The remote array: a layout, a handle, and what can be done with it."""
