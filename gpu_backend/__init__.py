"""The pool's side, and what both sides of the wire share."""

from gpu_backend import sources

sources.prefer_if_asked()
