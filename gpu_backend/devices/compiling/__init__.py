"""What a notebook may give to a compiler: sources, headers and options, checked before any compiler sees them."""
