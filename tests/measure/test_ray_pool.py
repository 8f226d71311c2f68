"""What needs no cluster: refusing an address where nothing listens. The rest is in test_faults."""

from __future__ import annotations

import socket

import pytest

from tilewright.errors import MeasureError
from tilewright.measure import RayPool
from tilewright.measure.ray_pool import _probe


@pytest.fixture
def closed() -> str:
    """An address at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_an_address_where_nothing_listens_is_refused_at_once(
    closed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(MeasureError, match=f"cannot reach Ray at {closed}: .*refused"):
        RayPool(closed)


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_an_address_where_something_listens_is_left_to_ray(form: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _probe(form.format(f"127.0.0.1:{server.getsockname()[1]}"))


def test_names_without_a_port_are_left_to_ray() -> None:
    _probe("auto")
    _probe("local")
