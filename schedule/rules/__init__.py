"""Built-in sketch rules: ordinary functions on a schedule with knobs."""

from tilewright.schedule.rules.choose import default_rules

__all__ = ["default_rules"]
