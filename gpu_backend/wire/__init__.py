"""The wire: typed, versioned messages and their bytes. Pure; it opens no socket."""
