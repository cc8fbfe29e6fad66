"""The compose file and the images, tested without a container engine.

Every command of our containers is run directly, in an equivalent environment.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import make_url

from tests.support import servers
from tests.support.databases import Databases, programs
from tests.support.installation import environment
from tests.support.waiting import PATIENCE_S, until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
OURS = ("setup", "web", "worker")


def _stages() -> dict[str, list[tuple[str, str]]]:
    """The Dockerfile's instructions by stage, continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())
    stages: dict[str, list[tuple[str, str]]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages[name] = list(stages.get(base, []))
        stages[name].append((word, rest))
    return stages


STAGES = _stages()


def _last(stage: str, word: str) -> str:
    return [rest for instruction, rest in STAGES[stage] if instruction == word][-1]


def _command(stage: str) -> list[str]:
    command: list[str] = json.loads(_last(stage, "CMD"))
    return command


def _health_check(stage: str) -> list[str]:
    check: list[str] = json.loads(_last(stage, "HEALTHCHECK").partition("CMD ")[2])
    return check


def test_compose_file_has_keys_that_compose_knows_with_values_of_their_types() -> None:
    assert COMPOSE.keys() == {"name", "services", "volumes", "secrets", "x-environment"}
    types = {
        "build": dict,
        "command": list,
        "depends_on": dict,
        "environment": dict,
        "healthcheck": dict,
        "image": str,
        "init": bool,
        "ports": list,
        "restart": str,
        "secrets": list,
        "stop_grace_period": str,
        "volumes": list,
    }
    for service in COMPOSE["services"].values():
        assert {key: type(value) for key, value in service.items()}.items() <= types.items()
        assert service.get("build", {}).keys() <= {"context", "target"}
        assert service.get("healthcheck", {}).keys() <= {"test", "interval", "timeout", "retries"}
        for how in service.get("depends_on", {}).values():
            assert how.keys() == {"condition"}
            assert how["condition"] in ("service_healthy", "service_completed_successfully")
        for value in service.get("environment", {}).values():
            assert value is None or isinstance(value, str)
    assert set(COMPOSE["volumes"].values()) == {None}
    assert COMPOSE["secrets"] == {"owner_password": {"environment": "CALLBOARD_OWNER_PASSWORD"}}


def test_compose_services_reference_existing_services_volumes_and_stages() -> None:
    services = COMPOSE["services"]
    assert {services[name]["build"]["target"] for name in OURS} <= set(STAGES)
    for service in services.values():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in services
            assert how["condition"] != "service_healthy" or "healthcheck" in services[needed]
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in COMPOSE["volumes"]
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"])
    for name in ("web", "worker"):
        assert services[name]["restart"] == "unless-stopped"
    assert services["web"]["ports"] == ["127.0.0.1:8642:8642"]


def test_worker_of_another_host_takes_its_name_and_what_hosts_share_from_the_shell() -> None:
    variables = COMPOSE["services"]["worker"]["environment"]
    for name in ("DATABASE_URL", "REDIS_URL", "ARTIFACTS_URL", "HOST_NAME"):
        assert variables[f"CALLBOARD_{name}"].startswith(f"${{CALLBOARD_{name}:-")


def test_dockerfile_references_existing_files_extras_and_scripts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    scripts = json.loads((ROOT / "frontend" / "package.json").read_text())["scripts"]
    for instructions in STAGES.values():
        for word, rest in instructions:
            if word == "COPY" and not rest.startswith("--from"):
                for source in shlex.split(rest)[:-1]:
                    assert any(ROOT.glob(source)), source
            for extras in re.findall(r"'\.\[(.+?)\]'", rest):
                assert set(extras.split(",")) <= set(project["optional-dependencies"])
            for script in re.findall(r"npm run (\w+)", rest):
                assert script in scripts


@pytest.mark.parametrize("stage", ["web", "worker"])
def test_images_run_as_unprivileged_user_with_health_check(stage: str) -> None:
    assert _last(stage, "USER") == "callboard"
    assert _last(stage, "USER") in _last("base", "RUN") or "useradd --system callboard" in str(STAGES["base"])
    assert _command(stage) == ["callboard", stage]
    assert _health_check(stage)


class Containers:
    """Runs the containers' commands in their environments, on the tests' own database and Redis."""

    def __init__(self, folder: Path, port: str, database_url: str, redis_url: str) -> None:
        self._folder = folder
        self._port = port
        self._replaced = {
            "CALLBOARD_DATABASE_URL": database_url,
            "CALLBOARD_REDIS_URL": redis_url,
            "CALLBOARD_ARTIFACTS_URL": (folder / "artifacts").as_uri(),
            "CALLBOARD_HOST": "127.0.0.1",
            "CALLBOARD_PORT": self._port,
            "CALLBOARD_ALLOWED_HOSTS": '["localhost", "127.0.0.1"]',
            "CALLBOARD_HOST_NAME": "worker-1",
            "CALLBOARD_SLOTS": "1",
        }

    def run(self, service: str, command: list[str]) -> subprocess.CompletedProcess[str]:
        """Run a command and wait for its end."""
        return subprocess.run(
            self._here(command),
            env=self._environment(service),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextmanager
    def running(self, service: str, command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
        """Run a command in the context; it must end cleanly on SIGTERM."""
        log = self._folder / f"{service}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._here(command), env=self._environment(service), stdout=output, stderr=subprocess.STDOUT
            )
        try:
            yield process
            process.terminate()
            # After its shutdown uvicorn ends by the signal it received.
            assert process.wait(timeout=PATIENCE_S) in (0, -signal.SIGTERM), log.read_text()
        finally:
            process.kill()
            process.wait()

    def _environment(self, service: str) -> dict[str, str]:
        variables = COMPOSE["services"][service].get("environment", {})
        unknown = {name for name, value in variables.items() if "${" in str(value)} - set(self._replaced)
        assert not unknown
        set_here = {name: value for name, value in variables.items() if value is not None}
        given = {name: self._replaced.get(name, value) for name, value in set_here.items()}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        home = environment(self._folder / service) | {"CALLBOARD_PORT": self._port, "PATH": path}
        return home | {name: str(value) for name, value in given.items()}

    def _here(self, command: list[str]) -> list[str]:
        secrets = self._folder / "secrets"
        return [
            part.replace("/run/secrets", str(secrets)).replace("127.0.0.1:8642", f"127.0.0.1:{self._port}")
            for part in command
        ]


@pytest.fixture
def port() -> Iterator[str]:
    """A port at which connections are refused until a process listens."""
    # Bound, but not listening: nobody else gets it.
    with socket.socket() as reserved:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(("127.0.0.1", 0))
        yield str(reserved.getsockname()[1])


@pytest.fixture
def containers(tmp_path: Path, port: str, own_postgres_url: str, redis_url: str) -> Containers:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "owner_password").write_text("long enough by far")
    return Containers(tmp_path, port, own_postgres_url, redis_url)


@pytest.fixture
def own_postgres_url(postgres: Databases) -> Iterator[str]:
    with postgres.database(migrated=False) as url:
        yield url


@pytest.mark.service
def test_setup_web_and_worker_commands_run_and_become_healthy(containers: Containers) -> None:
    setup = containers.run("setup", COMPOSE["services"]["setup"]["command"])
    assert setup.returncode == 0, setup.stderr
    assert "latest schema" in setup.stdout
    assert "password of owner changed" in setup.stdout
    again = containers.run("setup", COMPOSE["services"]["setup"]["command"])
    assert "owner has a password already" in again.stdout
    for service in ("web", "worker"):
        assert containers.run(service, _health_check(service)).returncode != 0
        with containers.running(service, _command(service)):
            until(lambda s=service: containers.run(s, _health_check(s)).returncode == 0)  # type: ignore[misc]


@pytest.mark.service
def test_database_health_check_detects_running_and_missing_server(postgres: Databases) -> None:
    word, *check = COMPOSE["services"]["database"]["healthcheck"]["test"]
    assert word == "CMD"
    with postgres.database() as url:
        host = str(make_url(url).query["host"])
        where = os.environ | {"PATH": f"{programs()}{os.pathsep}{os.environ['PATH']}", "PGHOST": host}
        assert subprocess.run(check, env=where, check=False).returncode == 0
        assert subprocess.run(check, env=where | {"PGHOST": "/nowhere"}, check=False).returncode != 0


@pytest.mark.service
def test_redis_health_check_detects_running_server(
    port: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folders = {str(Path(servers.required(name)).parent) for name in ("redis-server", "redis-cli")}
    path = os.pathsep.join([*folders, os.environ["PATH"]])
    where = servers.environment() | {"PATH": path}
    service = COMPOSE["services"]["redis"]
    server, (word, *check) = service["command"], service["healthcheck"]["test"]
    assert word == "CMD"
    check[1:1] = ["-p", port]  # another Redis may use port 6379
    assert subprocess.run(check, env=where, check=False).returncode != 0
    folder = tmp_path_factory.mktemp("redis")
    command = [*server, "--port", port, "--bind", "127.0.0.1"]
    with subprocess.Popen(command, env=where, cwd=folder, stdout=subprocess.DEVNULL) as process:
        until(lambda: subprocess.run(check, env=where, check=False).returncode == 0)
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == 0
    assert list(folder.iterdir()) == []
