"""What commands share."""

from __future__ import annotations

import click
import pytest

from tilewright.cli.common import duration, duration_text, pair, seconds_text, shape


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10min", 600), ("10 min", 600), ("1.5h", 5400), ("2m", 120)],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "10 days", "-1s", "0", "1,5h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no length of time; write 90s, 10min or 1.5h"):
        duration(text)


def test_a_pair_is_cut_at_its_last_equals_sign() -> None:
    assert pair("a=b=c.npy") == ("a=b", "c.npy")


@pytest.mark.parametrize("text", ["x", "x=", "=y"])
def test_half_a_pair_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="not of the form NAME=VALUE"):
        pair(text)


def test_a_shape_may_be_written_with_commas_or_crosses() -> None:
    assert shape("x=1,3,48") == shape("x=1x3x48") == ("x", (1, 3, 48))


@pytest.mark.parametrize("text", ["x=1,0", "x=1,,2", "x=a", "x=-1,2"])
def test_a_malformed_shape_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="a shape is positive whole numbers by commas"):
        shape(text)


def test_durations_print_as_minutes_and_seconds() -> None:
    assert [duration_text(s) for s in (0, 59.6, 75, 3600)] == ["0:00", "1:00", "1:15", "60:00"]
    assert duration_text(float("inf")) == duration_text(float("nan")) == "-"


def test_seconds_print_in_a_unit_that_suits() -> None:
    assert [seconds_text(s) for s in (2.0, 0.0123, 4.56e-6)] == ["2 s", "12.3 ms", "4.56 us"]
