"""What the benchmark needs of a GPU host, and the check of it."""

import ast
import re
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
import torch

from benchmarks.gpu import bundle, cuda_tests, packages
from benchmarks.gpu.packages import BUNDLED, LOADED, NEEDED, normalize, read_host_packages
from tests import quick
from tests.support import nvml
from tests.support.nvml import FakeGpu

pytestmark = pytest.mark.long

ROOT = bundle.ROOT
NAMES = {"cv2": "opencv-python-headless", "pynvml": "nvidia-ml-py"}
"""Package by what is imported of it, if they differ by more than a hyphen."""
LEFT_OUT = {"av", "envpool", "mujoco", "ray", "vizdoom"}
"""What the engine imports for environments, methods and videos that the benchmark does without."""
WHEELS = [
    "ale_py-0.12.1-cp312-cp312-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
    "gymnasium-1-py3-none-any.whl",
]


def sources() -> set[Path]:
    """The benchmark, the engine, the tests marked `cuda`, and every module of ours that they import."""
    waiting = [*(ROOT / "benchmarks/gpu").rglob("*.py"), *(ROOT / "workers/engine").rglob("*.py")]
    waiting += [ROOT / name for name in cuda_tests.list_files()]
    reached: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        for name in quick.imports(path):
            stem = ROOT / name.replace(".", "/")
            waiting += [file for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()]
    return reached


def imported(path: Path) -> set[str]:
    """Packages that a file imports, at its top or later, besides ours and the standard library."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - set(quick.PACKAGES)


def test_host_and_bundle_have_all_that_the_benchmark_and_the_engine_import() -> None:
    files = sources()
    assert ROOT / "tests/support/devices.py" in files
    names = set().union(*(imported(path) for path in files))
    needed = {NAMES.get(name, normalize(name)) for name in names}
    assert needed - {*NEEDED, *BUNDLED} == LEFT_OUT


def test_bundle_has_every_module_that_the_benchmark_and_the_engine_import(tmp_path: Path) -> None:
    bundle.copy_source(tmp_path)
    missing = {path for path in sources() if not (tmp_path / "source" / path.relative_to(ROOT)).is_file()}
    assert missing == set()


def test_packages_come_from_host_or_bundle_and_so_do_their_requirements() -> None:
    host = read_host_packages()
    assert {"torch", "numpy"} <= host
    assert {*NEEDED, *LOADED} <= host
    assert host & set(BUNDLED) == {"typing-extensions"}
    lines = [line for name in BUNDLED for line in metadata.requires(name) or () if "extra ==" not in line]
    names = {normalize(re.split(r"[^\w.-]", line)[0]) for line in lines}
    assert "numpy" in names
    assert names - host - set(BUNDLED) == set()


def test_every_test_file_with_tests_marked_cuda_is_listed() -> None:
    files = {ROOT / name for name in cuda_tests.list_files()}
    assert ROOT / "tests/workers/engine/nn/test_devices.py" in files
    users = {
        path for path in (ROOT / "tests").rglob("test_*.py") if "tests.support.devices" in quick.imports(path)
    }
    assert users <= files


def test_missing_packages_are_listed() -> None:
    assert packages.list_missing(["numpy", "no-such-package", "torch"]) == ["no-such-package"]
    assert packages.list_missing() == []


def test_distribution_without_a_name_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "left-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert packages.list_missing(["numpy"]) == []


def test_wheels_that_cannot_be_installed_beside_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gymnasium-1-py3-none-any.whl").touch()
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write to any folder
    assert f"{tmp_path} cannot be written to; copy the folder to where it can" in packages.check(
        tmp_path, "cpu"
    )


def test_gpu_is_found_by_its_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install(monkeypatch, FakeGpu())
    assert packages.check_gpu() == []
    nvml.install(monkeypatch)
    assert packages.check_gpu() == ["missing: a GPU; without one: --device cpu"]
    monkeypatch.setitem(sys.modules, "pynvml", nvml.FakeNvml(None))
    [problem] = packages.check_gpu()
    assert problem.startswith("missing: a GPU with its driver")


@pytest.mark.parametrize(
    ("wheels", "version", "machine", "problem"),
    [
        (WHEELS, (3, 12), "x86_64", None),
        (
            WHEELS,
            (3, 13),
            "x86_64",
            "the wheels are for Python 3.12 on x86_64; this is Python 3.13 on x86_64",
        ),
        (
            WHEELS,
            (3, 12),
            "aarch64",
            "the wheels are for Python 3.12 on x86_64; this is Python 3.12 on aarch64",
        ),
        (WHEELS[1:], (3, 13), "aarch64", None),
    ],
)
def test_interpreter_must_fit_the_wheels(
    wheels: list[str], version: tuple[int, int], machine: str, problem: str | None
) -> None:
    assert packages.check_interpreter(wheels, version, machine) == ([problem] if problem else [])


def test_each_wheel_that_is_missing_is_listed() -> None:
    names = [f"{name.replace('-', '_')}-1-py3-none-any.whl" for name in BUNDLED]
    assert packages.check_wheels(names) == []
    left = [name for name in names if not name.startswith(("gymnasium-", "stable_baselines3-"))]
    assert packages.check_wheels(left) == [
        f"missing: the wheel of {name}; build the wheels again with `make gpu-bundle` in a checkout"
        for name in ("gymnasium", "stable-baselines3")
    ]
    assert packages.check_wheels([]) == [
        "missing: the wheels; build them with `make gpu-bundle` in a checkout"
    ]


def test_wheels_that_are_damaged_or_refuse_a_version_are_listed(tmp_path: Path) -> None:
    installed = metadata.version("numpy")
    wheel = tmp_path / "stable_baselines3-2.9.2-py3-none-any.whl"
    lines = ["numpy<2,>=1", "torch>=1", "pydantic<1", "no-such-package", 'pandas<1; extra == "extra"']
    with zipfile.ZipFile(wheel, "w") as archive:
        text = "".join(f"Requires-Dist: {line}\n" for line in lines)
        archive.writestr("stable_baselines3-2.9.2.dist-info/METADATA", f"Metadata-Version: 2.1\n{text}")
    torn = tmp_path / "gymnasium-1.4.0-py3-none-any.whl"
    torn.write_bytes(wheel.read_bytes()[:100])
    assert packages.check_versions([wheel, torn]) == [
        f"numpy is {installed}, but stable-baselines3 needs numpy<2,>=1",
        f"damaged: {torn.name}; copy the wheels again",
    ]


def test_versions_are_not_checked_with_a_pip_that_was_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip._vendor.packaging.requirements", None)
    assert packages.check_versions([tmp_path / "x-1-py3-none-any.whl"]) == []


def test_torch_that_cannot_be_imported_is_named() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        [problem] = packages.check_torch()
    assert problem.startswith("torch cannot be imported: ")


@pytest.mark.skipif(torch.cuda.is_available(), reason="PyTorch can use a GPU here")
def test_torch_that_cannot_use_a_gpu_is_named_in_one_line() -> None:
    [problem] = packages.check_torch()
    assert problem.startswith(f"torch {torch.__version__} cannot use a GPU: ")
    assert problem.endswith("; without one: --device cpu")
    assert "\n" not in problem
