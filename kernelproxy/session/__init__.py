"""The notebook's session in the pool: how it is asked for, opened, kept and found again, and what is said of it."""
