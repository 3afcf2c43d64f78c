"""One description of what is shown (``document``), and the ways to show it: text, HTML, terminal, figure."""
