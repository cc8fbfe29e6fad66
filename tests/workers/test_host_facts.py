import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from backend.specs.host_load import HostLoad
from tests.support import nvml
from tests.support.nvml import FakeGpu
from tests.support.packages import Site
from workers.host_facts import Gpus, Load, known_worker_id, worker_id

GIB = 2**30


def test_workers_of_one_home_have_one_id_even_if_they_start_at_once(tmp_path: Path) -> None:
    for number in range(100):
        home = tmp_path / str(number)
        assert known_worker_id(home) is None
        at_once = Barrier(4)

        def start(home: Path = home, at_once: Barrier = at_once) -> str:
            at_once.wait()
            return worker_id(home)

        with ThreadPoolExecutor(4) as threads:
            ids = {started.result() for started in [threads.submit(start) for _ in range(4)]}
        assert ids == {known_worker_id(home)}
    assert worker_id(tmp_path / "another") not in ids


def test_empty_file_of_an_interrupted_start_is_no_id(tmp_path: Path) -> None:
    worker_id(tmp_path)
    for file in tmp_path.iterdir():
        os.truncate(file, 0)
    assert known_worker_id(tmp_path) is None
    assert len(worker_id(tmp_path)) == 32
    assert worker_id(tmp_path) == known_worker_id(tmp_path)


def test_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "worker-id").mkdir()
    for read in (known_worker_id, worker_id):
        with pytest.raises(IsADirectoryError):
            read(tmp_path)


def test_load_of_gpus_has_use_memory_and_power(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install_with_pytorch(
        monkeypatch, FakeGpu(), FakeGpu("NVIDIA A100", "GPU-1", gpu_pct=75, power_w=None)
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1,GPU-0")
    gpus = Gpus()
    assert gpus.devices == ["cuda:1 (NVIDIA A100)", "cuda:0 (NVIDIA H200)"]
    load = HostLoad.model_validate(Load(gpus).read())
    first, second = load.gpus
    assert (first.index, first.gpu_pct, first.memory_used_bytes, first.power_w) == (1, 75.0, GIB, None)
    assert (second.index, second.gpu_pct, second.memory_bytes) == (0, 50.0, 80 * GIB)
    assert (second.power_w, second.power_limit_w) == (300.0, 700.0)
    assert load.recent.gpus == [[0.75], [0.5]]


@pytest.mark.parametrize(
    ("version_file", "devices"),
    [
        ("cuda: str | None = None", []),
        ("cuda: str | None = '12.8'", ["cuda:0 (NVIDIA H200)"]),
        ("", []),
        ("torn(", []),
        (None, []),
    ],
)
def test_gpus_are_those_of_a_pytorch_for_cuda(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version_file: str | None, devices: list[str]
) -> None:
    nvml.install(monkeypatch, FakeGpu())
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise RuntimeError('the worker imports torch')")
    if version_file is not None:
        (tmp_path / "torch/version.py").write_text(version_file)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    gpus = Gpus()
    assert (gpus.devices, gpus.choose([])) == (devices, None)


@pytest.mark.parametrize(
    ("in_use", "chosen"),
    [
        ([], "GPU-1"),
        (["GPU-1"], "GPU-2"),
        (["GPU-1", None, "GPU-2"], "GPU-0"),
        (["GPU-0", "GPU-1", "GPU-2"], "GPU-1"),
        (["GPU-0", "GPU-1", "GPU-1", "GPU-2"], "GPU-2"),
    ],
)
def test_next_run_gets_a_gpu_with_the_fewest_runs_then_the_least_memory_in_use(
    monkeypatch: pytest.MonkeyPatch, in_use: list[str | None], chosen: str
) -> None:
    used = (70 * GIB, GIB, 2 * GIB)
    nvml.install_with_pytorch(
        monkeypatch, *(FakeGpu(uuid=f"GPU-{i}", memory_used_bytes=used[i]) for i in range(len(used)))
    )
    assert Gpus().choose(in_use) == chosen


def test_instances_of_a_gpu_are_chosen_like_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    instances = [FakeGpu("NVIDIA H200 MIG 1g.18gb", f"MIG-{letter}") for letter in "ab"]
    fake = nvml.install_with_pytorch(monkeypatch, FakeGpu(), *instances)
    monkeypatch.setattr(fake, "nvmlDeviceGetCount", lambda: 1)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-a,MIG-b")
    gpus = Gpus()
    assert len(gpus.devices) == 2
    assert [gpus.choose(in_use) for in_use in ([], ["MIG-a"], ["MIG-b"])] == ["MIG-a", "MIG-b", "MIG-a"]


@pytest.mark.parametrize("variable", ["", "-1", "GPU-1,GPU-1"])
def test_without_visible_gpu_there_is_no_choice(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    nvml.install_with_pytorch(monkeypatch, FakeGpu(), FakeGpu(uuid="GPU-1"))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    gpus = Gpus()
    assert (gpus.devices, gpus.choose([None, None])) == ([], None)


def test_with_one_gpu_or_none_there_is_no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml.install_with_pytorch(monkeypatch, FakeGpu())
    assert Gpus().choose([]) is None
    nvml.install_with_pytorch(monkeypatch)
    assert Gpus().choose([]) is None


@pytest.mark.long  # each method is loaded with PyTorch, after one that ends the process in another one
def test_distributions_whose_methods_cannot_be_loaded_are_refused_and_not_published(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.install("good-one", algorithm="good")
    site.install("bad-spec", spec="raise RuntimeError('no licence')", algorithm="bad_spec")
    site.install("bad-engine", algorithm="bad_engine", engine="import not_installed")
    site.install("bad-method", algorithm="bad_method", engine="METHOD = 5")
    site.install("ending", algorithm="ending", engine="import os; os._exit(3)")
    code = (
        "import json; from workers import host_facts as f; r = f.refused_packages(); "
        "print(json.dumps([r, f.versions(r, [None])]))"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    printed = subprocess.run([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, check=True)
    refused, versions = json.loads(printed.stdout)
    assert refused == {
        "bad-spec==1.0": "RuntimeError: no licence",
        "bad-engine==1.0": "ModuleNotFoundError: No module named 'not_installed'",
        "bad-method==1.0": "RegistryError: bad_method_engine:METHOD is no Method but a int",
        "ending==1.0": "its code ended the process with exit code 3",
    }
    assert versions["good-one"] == "1.0"
    assert not {"bad-spec", "bad-engine", "bad-method", "ending"} & versions.keys()
