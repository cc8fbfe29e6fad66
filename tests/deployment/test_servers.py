"""What `make test-long` does about servers that the machine lacks."""

import os
import shutil
from pathlib import Path

import pytest

from tests.support import servers

pytestmark = [pytest.mark.service, pytest.mark.long]

FAILS = "#!/bin/sh\necho 'W: old list' >&2\necho 'E: Unable to locate package' >&2\nexit 100\n"
DOWNLOADS = """#!/bin/sh
for last; do :; done
for option; do case $option in Dir::Cache::archives=*) : > "${option#*=}/$last.deb" ;; esac; done
"""
UNPACKS = """#!/bin/sh
name=$(basename "$2" .deb)
mkdir -p "$3/usr/sbin" "$3/usr/share/doc"
printf '#!/bin/sh\\n' > "$3/usr/sbin/$name"
chmod +x "$3/usr/sbin/$name"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of all programs of a machine that has none of the servers."""
    programs, folder = tmp_path / "bin", tmp_path / "servers"
    programs.mkdir()
    for name in ("basename", "mkdir", "chmod", "sh", "true"):
        (programs / name).symlink_to(shutil.which(name) or "")
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(servers, "FOLDER", folder)
    monkeypatch.setattr(servers, "PLACES", [folder / "usr" / "sbin"])
    monkeypatch.setattr(servers, "PACKAGES", {"nginx-of-a-test": "nginx-of-a-test", "other": "other"})
    archives = f"Dir::Cache::archives={folder / 'archives'}"
    monkeypatch.setattr(servers, "DOWNLOAD", ["apt-get", "install", "-o", archives])
    return programs


def install(programs: Path, **scripts: str) -> None:
    for name, script in scripts.items():
        path = programs / name.replace("_", "-")
        path.write_text(script)
        path.chmod(0o755)


def test_servers_that_cannot_be_got_are_named_with_the_reason(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for given, reason in (
        ({}, "install the package '{}'"),
        ({"apt_get": FAILS, "dpkg_deb": UNPACKS}, "E: Unable to locate package"),
    ):
        install(machine, **given)
        servers.main()
        assert capsys.readouterr().out.splitlines() == [
            f"{name} could not be got, and its tests are skipped: {reason.format(name)}"
            for name in ("nginx-of-a-test", "other")
        ]
    with pytest.raises(pytest.skip.Exception, match="other could not be got: install the package 'other'"):
        servers.required("other")


def test_servers_are_downloaded_and_unpacked_but_not_installed(
    machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(machine, apt_get=DOWNLOADS, dpkg_deb=UNPACKS)
    servers.main()
    assert capsys.readouterr().out == ""
    path = servers.FOLDER / "usr" / "sbin" / "nginx-of-a-test"
    assert servers.required("nginx-of-a-test") == str(path)
    assert os.listdir(servers.FOLDER / "usr") == ["sbin"], "what no server needs is not kept"
    assert not (servers.FOLDER / "archives").exists()
