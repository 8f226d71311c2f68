"""The timing protocol on invented clocks, and the reference kernel. No claim about speed."""

from __future__ import annotations

import ctypes
import itertools
import math
from typing import cast

import pytest

from tilewright.codegen.compile import compile_text
from tilewright.codegen.target import Target
from tilewright.measure.timing import Protocol, ReferenceKernel, race, repeat
from tilewright.runtime.kernel import pointer_array
from tilewright.runtime.link import link_object


class Machine:
    """A kernel and a reference on a machine whose speed drifts."""

    seconds = 1e-4  # of the reference at its usual speed

    def __init__(self, kernel_s: float, drift: tuple[float, ...] = (1.0,)) -> None:
        self.kernel_s = kernel_s
        self.drift = drift
        self.calls: list[int] = []
        self.n_samples = 0

    def _slowness(self) -> float:
        return self.drift[self.n_samples % len(self.drift)]

    def once(self, n: int) -> float:
        self.calls.append(n)
        return self.kernel_s * self._slowness()

    def sample(self) -> float:
        seconds = self.seconds * self._slowness()
        self.n_samples += 1
        return seconds

    def race(self, best: float = math.inf, protocol: Protocol | None = None) -> float:
        """The value, as a runner derives it."""
        samples, references = race(
            self.once, cast(ReferenceKernel, self), best, protocol or Protocol()
        )
        assert len(samples) == len(references) == self.n_samples
        return min(samples) / min(references) * self.seconds


def test_a_steady_machine_needs_the_fewest_samples() -> None:
    machine = Machine(1e-3)
    assert machine.race() == pytest.approx(1e-3)
    assert machine.n_samples == Protocol().first


def test_a_noisy_machine_gets_more_samples_but_not_for_ever() -> None:
    machine = Machine(1e-3)
    noise = itertools.cycle([1.0, 1.5, 0.8, 1.3, 1.0, 1.6, 0.9, 1.2, 1.1, 1.0, 1.4])
    machine.once = lambda n: 1e-3 * next(noise)  # type: ignore[method-assign]
    machine.race()
    assert machine.n_samples == Protocol().most


def test_drift_is_divided_out() -> None:
    machine = Machine(2e-3, drift=(1.0, 1.4, 2.0, 1.2))
    assert machine.race() == pytest.approx(2e-3)
    assert machine.n_samples == Protocol().first  # the ratios agree
    assert Machine(2e-3, drift=(3.0,)).race() == pytest.approx(2e-3)


def test_a_candidate_far_behind_the_best_is_given_up_after_two_samples() -> None:
    machine = Machine(1e-3)
    assert machine.race(best=1e-4) == pytest.approx(1e-3)
    assert machine.n_samples == 2


def test_a_candidate_close_to_the_best_is_not_given_up() -> None:
    machine = Machine(1.4e-3)
    machine.race(best=1e-3)
    assert machine.n_samples == Protocol().first


def test_a_slow_machine_alone_is_no_reason_to_give_up() -> None:
    machine = Machine(1e-3, drift=(4.0,))
    machine.race(best=1e-3)
    assert machine.n_samples == Protocol().first


@pytest.mark.parametrize(
    ("kernel_s", "n", "warm"),
    [(1.0, 1, 0), (2e-3, 1, 0), (1e-4, 10, 2), (1e-6, 1000, 200), (0.0, 10_000, 10_000)],
)
def test_short_kernels_are_repeated_to_fill_a_sample(kernel_s: float, n: int, warm: int) -> None:
    machine = Machine(kernel_s or 1e-12)
    machine.race()
    assert machine.calls[0] == 1
    each = 2 if warm else 1
    sampled = machine.calls[len(machine.calls) - each * machine.n_samples :]
    assert all(abs(called - n) <= 1 for called in sampled[each - 1 :: each])
    assert not warm or all(abs(called - warm) <= 1 for called in sampled[::2])


def test_a_slow_first_call_does_not_set_the_number_of_repeats() -> None:
    machine = Machine(1e-6)
    cold = iter([8e-4, 5e-5])  # threads start, caches fill

    def once(n: int) -> float:
        machine.calls.append(n)
        return next(cold, 1e-6)

    machine.once = once  # type: ignore[method-assign]
    machine.race()
    assert abs(machine.calls[-1] - 1000) <= 1


def test_the_reference_runs_until_the_threads_of_a_shared_kernel_sleep() -> None:
    class Spinning(Machine):
        """The first run of the reference after a call is slowed."""

        def once(self, n: int) -> float:
            self.disturbed = True
            return super().once(n)

        def sample(self) -> float:
            seconds = super().sample() * (1.5 if self.disturbed else 1.0)
            self.disturbed = False
            return seconds

    machine = Spinning(1e-3)
    samples, references = race(
        machine.once, cast(ReferenceKernel, machine), math.inf, Protocol(), shared=True
    )
    assert references == [machine.seconds] * len(samples)


def test_one_sample_is_enough_when_the_protocol_says_so() -> None:
    machine = Machine(1e-3)
    machine.race(protocol=Protocol(first=1, most=1))
    assert machine.n_samples == 1


def test_a_kernel_of_seconds_is_sampled_once() -> None:
    machine = Machine(3.0)
    assert machine.race() == pytest.approx(3.0)
    assert machine.n_samples == 1


COUNT = """
define void @count(ptr %args, ptr %workspace, ptr %runtime) {
entry:
  %p = load ptr, ptr %args
  %v = load i64, ptr %p
  %v1 = add i64 %v, 1
  store i64 %v1, ptr %p
  ret void
}
"""


@pytest.mark.parametrize("n", [1, 2, 1000])
def test_repeat_calls_the_kernel_so_many_times(n: int) -> None:
    linked = link_object(compile_text(COUNT, Target.host(1))[0], ["count"])
    counter = ctypes.c_int64(0)
    args = pointer_array([ctypes.addressof(counter)])
    seconds = repeat(linked.addresses["count"], args, 0, 0, n)
    assert counter.value == n
    assert seconds >= 0


def test_reference_kernels_lie_in_memory_in_the_same_way() -> None:
    one, two = ReferenceKernel(), ReferenceKernel()  # else their speeds differ twofold
    assert all(x.ctypes.data % 64 == 0 for x in (*one._arrays, *two._arrays))


def test_the_reference_kernel_has_a_usual_speed() -> None:
    reference = ReferenceKernel()
    assert reference.n >= 1
    assert 0 < reference.seconds < 1
    assert 0 < reference.sample() < 1 and 0 < reference.sample(2) < 1
