"""Gives MkDocs the generated pages; ``mkdocs.yml`` names this file under ``hooks``."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from catalog.site.pages import SCRIPT, STYLE, pages

__all__ = ["on_config", "on_files"]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Have every page load the style and the script of the catalogue."""
    config.extra_css.append(STYLE)
    config.extra_javascript.append(SCRIPT)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and downloads."""
    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
