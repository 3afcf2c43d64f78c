"""The executor: one process per session. It owns the session's arrays and runs its op stream on one device."""
