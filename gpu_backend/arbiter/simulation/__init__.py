"""The same core and policies in virtual time: traces in, shares, delays and utilisation out."""
