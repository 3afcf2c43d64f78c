"""The composition root of a pool: settings read once, processes started and ended, users and keys kept."""
