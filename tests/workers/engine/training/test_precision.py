from pathlib import Path

import pytest

from backend.specs.run import RunSpec, parse_run_spec
from workers.engine.training.start import bf16_warning


def spec(precision: str) -> RunSpec:
    request = {"algorithm": "paac", "environment": "ALE/Pong-v5", "stop": {"agent_steps": 1}}
    return parse_run_spec(request | {"config": {"precision": precision}})


@pytest.mark.parametrize(
    ("precision", "device", "flags", "warned"),
    [
        ("bf16", "cpu", "fpu avx2 avx512f", True),
        ("bf16", "cpu", "fpu avx512f avx512_bf16", False),
        ("bf16", "cpu", "fpu amx_bf16 amx_tile", False),
        ("bf16", "cuda:0 (NVIDIA H200)", "fpu avx2", False),
        ("fp32", "cpu", "fpu avx2", False),
    ],
)
def test_bf16_on_an_unsupported_processor_is_warned_about(
    tmp_path: Path, precision: str, device: str, flags: str, warned: bool
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t: none\n")
    message = bf16_warning(spec(precision), device, cpuinfo)
    assert (message is not None) == warned
    if message is not None:
        assert "config.precision" in message
        assert "use fp32" in message
