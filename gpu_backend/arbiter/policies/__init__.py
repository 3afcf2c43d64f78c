"""The rules by which a device can be shared: one policy per file, each a pure function of what it was shown."""
