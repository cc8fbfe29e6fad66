"""Where a script's run comes from: host, command, Python, packages, commit and changes.

Nothing of the environment is read but four variables. Values of arguments that may be secrets are masked.
"""

from __future__ import annotations

import os
import platform
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from callboard.limits import MAX_ARGUMENT_CHARACTERS, MAX_ARGUMENTS, MAX_DIFF_BYTES, MAX_PACKAGES
from callboard.rows import clean, dumps

MASK = "***"
VARIABLES = ("RANK", "WORLD_SIZE", "SLURM_JOB_ID", "CUDA_VISIBLE_DEVICES")
"""The only environment variables that are recorded."""
MAX_BYTES = 900_000
"""Maximum size as JSON: a request has less than 1,000,000 bytes."""

_GIT_TIMEOUT_S = 10.0
_LEFT_OUT = (":(exclude,icase,glob)**/.env*", ":(exclude,icase,glob)**/*.pem", ":(exclude,icase)*key*")
"""Files whose changes are not recorded, and whatever has `key` in its path."""

_HIDDEN = "[^=:/?&#@\\s\"']*(?:token|key|secret|passw|auth)[^=:/?&#@\\s\"']*"
_OPTION = re.compile(f"-{{1,2}}{_HIDDEN}", re.IGNORECASE)
_SHORT = re.compile("-[A-Za-z]|--.*")
_ASSIGNED = re.compile(f"(-{{0,2}}{_HIDDEN}\\s*[=:]\\s*).+", re.IGNORECASE | re.DOTALL)
_IN_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#]*@")
_IN_QUERY = re.compile(f"([?&;#]{_HIDDEN}=)[^&;#\\s]*", re.IGNORECASE)
_IN_JSON = re.compile(f"([\"']{_HIDDEN}[\"']\\s*:\\s*[\"'])[^\"']*", re.IGNORECASE)


def masked(command: Sequence[str]) -> list[str]:
    """A command line without the values of arguments that may be secrets, in addresses too.

    Such arguments have token, key, secret, passw or auth in their names: `--token=abc`, `--token abc`,
    `token=abc`, `https://host/?token=abc`. Of addresses, users and passwords are masked.
    """
    shown: list[str] = []
    is_value = False
    for argument in command:
        if is_value and not _SHORT.fullmatch(argument):
            shown.append(MASK)
            is_value = False
            continue
        is_value = _OPTION.fullmatch(argument) is not None
        text = _ASSIGNED.sub(rf"\g<1>{MASK}", argument) if _ASSIGNED.fullmatch(argument) else argument
        text = _IN_ADDRESS.sub(rf"\g<1>{MASK}@", text)
        shown.append(_IN_JSON.sub(rf"\g<1>{MASK}", _IN_QUERY.sub(rf"\g<1>{MASK}", text)))
    return shown


def provenance() -> dict[str, Any]:
    """The fields of `provenance` in `POST /runs/{id}/provenance`. Takes up to some seconds."""
    given = getattr(sys, "orig_argv", (sys.executable, *sys.argv))[:MAX_ARGUMENTS]
    command = masked([clean(str(argument), MAX_ARGUMENT_CHARACTERS) for argument in given])
    fields = {
        "host": clean(socket.gethostname(), 200),
        "command": [argument[:MAX_ARGUMENT_CHARACTERS] for argument in command],
        "python": platform.python_version(),
        "packages": _packages(),
        "variables": {name: clean(os.environ[name], 1_000) for name in VARIABLES if name in os.environ},
        **_code(),
    }
    while len(dumps(fields)) > MAX_BYTES and fields["diff"]:  # characters that JSON escapes
        fields["diff"] = _cut(fields["diff"], len(fields["diff"].encode()) // 2)
    return fields


def _packages() -> dict[str, str]:
    packages: dict[str, str] = {}
    for package in distributions():
        with suppress(Exception):  # of a package without metadata
            name, version = package.metadata["Name"], package.version
            if len(packages) < MAX_PACKAGES and name and name not in packages:
                packages[clean(name, 200)] = clean(version, 100)
    return dict(sorted(packages.items(), key=lambda item: item[0].lower()))


def _code() -> dict[str, Any]:
    """Commit and changes of the repository that the script is in; of the current folder without a script."""
    script = Path(sys.argv[0] if sys.argv else "")
    folder = script.absolute().parent if script.is_file() else Path.cwd()
    head = _git(folder, "rev-parse", "--verify", "HEAD").strip()
    if not re.fullmatch("[0-9a-f]{40,64}", head):
        return {"commit": None, "dirty": None, "diff": ""}
    top = Path(_git(folder, "rev-parse", "--show-toplevel").rstrip("\n") or folder)
    plain = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "HEAD", "--", ".")
    is_dirty = bool(_git(top, "diff", "--name-only", *plain))
    diff = _git(top, "diff", *plain, *_LEFT_OUT) if is_dirty else ""
    return {"commit": head, "dirty": is_dirty, "diff": _cut(clean(diff, MAX_DIFF_BYTES + 1), MAX_DIFF_BYTES)}


def _git(folder: Path, *arguments: str) -> str:
    """What git prints; empty if it fails. Runs no programs that the repository's settings name."""
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false", *arguments]
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return ""
    timer = _kill_after(process, _GIT_TIMEOUT_S)
    try:
        with process:
            assert process.stdout is not None
            output = process.stdout.read(MAX_DIFF_BYTES + 1)
            process.stdout.close()  # git ends if it has more
    finally:
        timer.cancel()
    return output.decode("utf-8", "replace")


def _kill_after(process: subprocess.Popen[bytes], seconds: float) -> threading.Timer:
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    return timer


def _cut(text: str, most: int) -> str:
    """A text of at most so many bytes; one that was cut ends in a line that says so."""
    if len(text.encode()) <= most:
        return text
    end = "\n… (cut)\n"
    return text.encode()[: max(0, most - len(end.encode()))].decode("utf-8", "ignore") + end
