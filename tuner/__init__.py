"""Searchers, the task scheduler, studies."""

if __name__ != "tilewright.tuner":
    raise ImportError("import this folder as tilewright.tuner; it is no top-level package")

from tilewright.tuner.annealing import Annealing
from tilewright.tuner.bayesian import Bayesian
from tilewright.tuner.descent import CoordinateDescent
from tilewright.tuner.evolutionary import Evolutionary
from tilewright.tuner.exhaustive import Exhaustive
from tilewright.tuner.guide import Guide
from tilewright.tuner.info import allocation_info, curve_info, ranking_info, trials_info
from tilewright.tuner.plots import plot_allocation, plot_curve, plot_ranking, plot_trials
from tilewright.tuner.random_search import RandomSearch
from tilewright.tuner.report import Event, PlainProgress, ProgressSink, RichProgress
from tilewright.tuner.searcher import Searcher, Seen
from tilewright.tuner.study import Study
from tilewright.tuner.warm import WarmStart, transfer

__all__ = [
    "Annealing", "Bayesian", "CoordinateDescent", "Event", "Evolutionary", "Exhaustive", "Guide", "PlainProgress",
    "ProgressSink", "RandomSearch", "RichProgress", "Searcher", "Seen", "Study", "WarmStart", "allocation_info",
    "curve_info", "plot_allocation", "plot_curve", "plot_ranking", "plot_trials", "ranking_info", "transfer",
    "trials_info",
]  # fmt: skip
