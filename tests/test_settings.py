"""The environment is read in one place, strictly."""

from __future__ import annotations

import pytest

from tilewright.errors import TilewrightError
from tilewright.settings import available_cores, settings


def test_an_empty_environment_gives_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TILEWRIGHT_DEBUG", raising=False)
    monkeypatch.delenv("TILEWRIGHT_THREADS", raising=False)
    assert settings().debug == 0
    assert settings().n_threads == available_cores() >= 1


def test_the_environment_is_read_at_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "3")
    assert settings().debug == 3
    monkeypatch.setenv("TILEWRIGHT_DEBUG", "4")
    assert settings().debug == 4


@pytest.mark.parametrize("value", ["yes", "-1", "6", "1.5"])
def test_a_value_out_of_range_is_refused_with_the_range(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("TILEWRIGHT_DEBUG", value)
    message = f"TILEWRIGHT_DEBUG={value}: must be a whole number from 0 to 5; unset it for 0"
    with pytest.raises(TilewrightError) as error:
        settings()
    assert str(error.value) == message
