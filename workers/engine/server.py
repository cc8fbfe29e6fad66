"""The engine server: a process that has loaded what engines need, and forks one for each request.

Requests come from the worker (`workers.engine_server`) over a socket: the engine's arguments as a JSON list,
with the descriptors of its standard output, of its standard error and, if it has one, of its control socket.
The reply is the engine's process id, which it sends itself, or the negative errno of a fork that failed. The
server ends when the worker's end of the socket is closed, however the worker ends.

An engine is forked twice, and the process in between exits at once. So the kernel makes the engine a child of
the worker, its nearest "child subreaper", and the engine outlives the server.

A forked process has none of its parent's other threads, but the locks that they held. So no thread may run in
the server, and nothing may be computed in it that starts some.
"""

import ctypes
import gc
import json
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

import workers.engine.nn.kernels
import workers.engine.training.loop  # noqa: F401  # all methods
from workers.engine.processes.child import fork_fork_server

MAX_REQUEST_BYTES = 1 << 16
READY = b"ready"
"""The first message, once all is loaded."""

_ENVIRONMENTS = (
    "workers.engine.envs.atari",
    "workers.engine.envs.gymnasium_env",
    "gymnasium.envs.classic_control",
)
"""The common ones. Others are loaded by the engines that play them, custom ones always."""
_WITH_CHILDREN = ("train", "evaluate")
"""Subcommands that start child processes by a fork server."""
_ARGUMENTS_AT = 45
"""Index of the addresses of the command line in /proc/self/stat, counted after the process's name."""


def serve(requests: socket.socket) -> list[str] | None:
    """Fork an engine for each request.

    Args:
        requests: one end of a pair of sockets that keep message boundaries.

    Returns:
        In an engine, its arguments. In the server None, when there will be no more requests.

    Raises:
        RuntimeError: what was loaded has started a thread.
    """
    for module in _ENVIRONMENTS:
        with suppress(ImportError):  # not installed
            import_module(module)
    gc.collect()
    gc.freeze()  # a collection in an engine would write to, and so copy, the pages of these objects
    sys.stdout.flush()  # otherwise each engine would print what is left
    if (first := os.fork()) == 0:
        os._exit(0)
    os.waitpid(first, 0)  # OpenBLAS starts threads when it is loaded, and ends them before a fork
    if (n := len(os.listdir("/proc/self/task"))) != 1:
        raise RuntimeError(f"the engine server has {n} threads, so engines cannot be forked from it")
    requests.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        if not message:
            return None
        if _fork_twice(requests):
            return _become_engine(json.loads(message), descriptors, requests)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_twice(requests: socket.socket) -> bool:
    """Fork a process that is no child of the server, and return whether this is it; or reply why it fails."""
    try:
        if process := os.fork():
            os.waitpid(process, 0)
            return False
    except OSError as error:
        requests.send(_failed(error))
        return False
    between = os.getpid()
    try:
        if os.fork():
            os._exit(0)
    except OSError as error:
        requests.send(_failed(error))
        os._exit(1)
    while os.getppid() == between:  # the worker is not its parent yet
        time.sleep(0.001)
    return True


def _become_engine(arguments: list[str], descriptors: Sequence[int], requests: socket.socket) -> list[str]:
    """Make this process like one that the worker has started with these descriptors; return its arguments."""
    os.setsid()
    for standard, descriptor in enumerate(descriptors[:2], 1):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for descriptor in descriptors[2:]:
        arguments += ["--control-fd", str(descriptor)]
    np.random.seed()  # at random, as Python's own generator does it after a fork
    torch.default_generator.seed()
    n_before = len(sys.orig_argv) - len(sys.argv) + 1
    sys.argv[1:] = sys.orig_argv[n_before:] = arguments
    _show(sys.orig_argv)
    with requests:
        requests.send(str(os.getpid()).encode())
    if arguments[0] in _WITH_CHILDREN:
        with suppress(OSError):  # the first child has one started, or fails
            fork_fork_server()
    return arguments


def _show(command: Sequence[str]) -> None:
    """Have the system show this command for this process: it is written over that of the server."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = (int(field) for field in fields[_ARGUMENTS_AT : _ARGUMENTS_AT + 2])
    # A last byte other than 0 marks a text that ends at the first 0.
    title = os.fsencode(" ".join(command))[: end - start - 2].ljust(end - start - 1, b"\0") + b" "
    if start:
        ctypes.memmove(start, title, end - start)


def _failed(error: OSError) -> bytes:
    return str(-(error.errno or 1)).encode()
