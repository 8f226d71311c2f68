"""Tilewright: a search-based auto-scheduling compiler for tensor programs."""

__version__ = "0.1.0"
__all__ = ["__version__"]
