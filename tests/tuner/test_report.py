from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest
from tests.tuner.doubles import FormulaPool, task

from tilewright.records import RecordStore
from tilewright.tuner import Event, PlainProgress, RichProgress, Study


class Sink:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.closed = 0

    def update(self, event: Event) -> None:
        self.events.append(event)

    def close(self) -> None:
        self.closed += 1


def run(path: Path, pool: FormulaPool, sink: Sink, trials: int = 40) -> Study:
    return Study([(task(), 1.0)], RecordStore(path), pool).run(trials, progress=sink)


def test_events_count_trials_and_failures_and_never_get_slower(tmp_path: Path) -> None:
    sink = Sink()
    s = run(tmp_path / "log", FormulaPool(failures=True), sink)
    last = sink.events[-1]
    assert (last.done, last.total) == (40, 40) and sink.closed == 1
    assert last.failures == {
        k: n
        for k in {r.status for r in s.store} - {"OK"}
        if (n := sum(r.status == k for r in s.store))
    }
    times = [e.model_s for e in sink.events]
    assert times == sorted(times, reverse=True) and last.model_s <= last.default_s
    assert all(e.left_s >= 0 and e.elapsed_s >= 0 for e in sink.events)


def test_the_display_is_closed_after_an_interrupt_and_after_an_error(tmp_path: Path) -> None:
    sink = Sink()
    run(tmp_path / "a", FormulaPool(stop_after=10), sink)
    assert sink.closed == 1

    class Broken(FormulaPool):
        def submit(self, inputs: object) -> None:
            raise RuntimeError("no cluster")

    with pytest.raises(RuntimeError, match="no cluster"):
        run(tmp_path / "b", Broken(), sink)
    assert sink.closed == 2


def test_plain_lines_tell_trials_rate_gain_and_failures() -> None:
    out = io.StringIO()
    sink = PlainProgress(out, every_s=0.0)
    sink.update(Event(30, 60, 10.0, 10.0, 1e-3, 4e-3, {"WRONG": 2, "BUILD_ERROR": 1}))
    sink.close()
    assert out.getvalue() == (
        "30/60 trials, 3.0/s, 10 s left, sum of kernels 1.000 ms (4.00x over default), "
        "failures: 1 build_error, 2 wrong\n"
    )


def test_the_reason_of_an_early_end_is_always_told(tmp_path: Path) -> None:
    out = io.StringIO()
    sink = PlainProgress(out, every_s=1e9)
    sink._last = 1e18
    sink.update(Event(30, 60, 10.0, 0.0, 1e-3, 4e-3, stopped="nothing is left"))
    assert out.getvalue().endswith("; stopped: nothing is left\n")
    events = Sink()
    s = Study([(task(8, 8, 8), 1.0)], RecordStore(tmp_path / "log"), FormulaPool())
    s.run(100_000, progress=events)
    assert events.events[-1].stopped == s.stopped and "were tried" in s.stopped


def test_plain_lines_come_seldom_but_the_last_one_always() -> None:
    out = io.StringIO()
    sink = PlainProgress(out, every_s=1e9)
    sink._last = 1e18
    for done in (10, 20, 30):
        sink.update(Event(done, 30, 1.0, 0.0, 1e-3, 1e-3))
    assert out.getvalue().count("\n") == 1 and out.getvalue().startswith("30/30")


def test_the_live_display_ends_with_its_threads() -> None:
    before = set(threading.enumerate())
    sink = RichProgress()
    sink.update(Event(1, 2, 1.0, 1.0, 1e-3, 2e-3))
    started = set(threading.enumerate()) - before
    assert started, "the display draws from a thread of its own"
    sink.close()
    for thread in started:  # told to stop, it ends with its next tick
        thread.join(timeout=10)
        assert not thread.is_alive()


def test_the_curve_is_drawn_on_given_axes(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from tilewright.tuner import plot_curve

    s = run(tmp_path / "log", FormulaPool(), Sink())
    figure, ax = plt.subplots()
    assert plot_curve(s, ax=ax) is ax
    line = ax.get_lines()[0]
    assert list(line.get_xdata()) == list(s.curve_info()["trial"])
    plt.close(figure)
