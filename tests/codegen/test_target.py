"""Targets: the host, fingerprints, JSON."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from tilewright.codegen.target import Target, _arm_features, _cpu_name
from tilewright.errors import BuildError

HOST = Target.host()


def test_the_host_has_plausible_numbers() -> None:
    assert HOST.n_threads == len(os.sched_getaffinity(0))
    assert HOST.vector_bits in (128, 256, 512) and HOST.n_registers in (16, 32)
    assert 4096 <= HOST.l1_bytes <= HOST.l2_bytes
    assert HOST.l3_bytes > 0 and HOST.peak_gflops > 1.0 and HOST.bandwidth_gbs > 0.1
    assert Target.host() is HOST


def test_threads_are_chosen_apart() -> None:
    assert Target.host(3) == replace(HOST, n_threads=3) == HOST.with_threads(3)
    with pytest.raises(BuildError) as error:
        Target.host(0)
    assert str(error.value) == "with_threads(0): needs 1 or more"


def test_the_fingerprint_tells_what_makes_records_differ() -> None:
    x = replace(HOST, features="+avx2,+fma")
    assert x.fingerprint == replace(x, features="+fma,+rdseed,+avx2").fingerprint
    assert x.fingerprint == replace(x, l3_bytes=1, bandwidth_gbs=1.0).fingerprint
    others = [
        replace(x, features="+avx2"),
        replace(x, cpu="zen9"),
        x.with_threads(77),
        replace(x, vector_bits=64),
    ]
    assert len({t.fingerprint for t in (x, *others)}) == 5
    assert replace(HOST, triple="aarch64-linux", cpu="n1").fingerprint.startswith("aarch64-n1-v")


def test_a_target_survives_json() -> None:
    assert Target.from_json(json.loads(json.dumps(HOST.to_json()))) == HOST


def test_a_target_of_another_version_is_refused() -> None:
    with pytest.raises(
        BuildError, match=r"Target\.from_json: .*'sockets'.*; is the file from another version\?"
    ):
        Target.from_json({**HOST.to_json(), "sockets": 2})


def test_instructions_of_arm_are_read_from_what_linux_lists() -> None:
    text = "processor\t: 0\nFeatures\t: fp asimd crc32 asimddp i8mm\nCPU part\t: 0xd40\n"
    assert _arm_features(text) == {"neon": True, "dotprod": True, "i8mm": True}
    assert _arm_features("processor\t: 0\nflags\t\t: sse asimd\n") == {}


@pytest.mark.parametrize(
    ("named", "features", "cpu"),
    [
        ("rocketlake", ("avx512f", "amx-tile"), "sapphirerapids"),
        ("emeraldrapids", ("avx512f", "amx-tile"), "emeraldrapids"),
        ("rocketlake", ("amx-tile", "amx-fp16"), "graniterapids"),
        ("graniterapids-d", ("amx-tile", "amx-fp16"), "graniterapids-d"),
        ("rocketlake", ("avx512f",), "rocketlake"),
    ],
)
def test_features_outrank_the_name_of_the_processor(
    named: str, features: tuple[str, ...], cpu: str
) -> None:
    assert _cpu_name(named, {"amx-fp16": False, **dict.fromkeys(features, True)}) == cpu
