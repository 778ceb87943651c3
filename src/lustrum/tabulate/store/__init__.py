"""Datasets on disk: written whole, checked when they are opened, replaced as a whole or not at all."""

from lustrum.tabulate.store.folder import EmbeddedEngine, Store

__all__ = ["EmbeddedEngine", "Store"]
