"""The command line: ``tilewright tune | compile | run | bench | records | space | doctor``."""

from tilewright.cli.main import group, invoke, main

__all__ = ["group", "invoke", "main"]
