"""What both sides know of the op stream: CuPy's names, what a call will give, and how arrays lie.

Neutral ground for notebook and executor: it imports the wire and nothing above.
"""
