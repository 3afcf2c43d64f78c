"""The stream of ops: recording, sending, and what comes back."""
