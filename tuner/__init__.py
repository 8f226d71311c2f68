"""Searchers, the task scheduler, studies."""

if __name__ != "tilewright.tuner":
    raise ImportError("import this folder as tilewright.tuner; it is no top-level package")

from tilewright.tuner.evolutionary import Evolutionary
from tilewright.tuner.plots import plot_curve
from tilewright.tuner.random_search import RandomSearch
from tilewright.tuner.report import Event, PlainProgress, ProgressSink, RichProgress
from tilewright.tuner.searcher import Searcher, Seen
from tilewright.tuner.study import Study

__all__ = [
    "Event", "Evolutionary", "PlainProgress", "ProgressSink", "RandomSearch", "RichProgress", "Searcher", "Seen", "Study",
    "plot_curve",
]  # fmt: skip
