"""``cupy.testing``: what a user's own tests are made of. Its names are served as `names.NAMES` says.

pytest is no dependency: it is imported where a decorator makes something of pytest's.
"""
