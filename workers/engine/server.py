"""The engine server: a process that has loaded what engines need, and forks one for each request.

Requests come from the worker (`workers.engine_server`) over a socket: the engine's arguments as a JSON list,
with the descriptors of its standard output, of its standard error and, if it has one, of its control socket.
The reply is the engine's process id, or the negative errno of a fork that failed. The server ends when the
worker closes its end of the socket, however it ends.

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
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import torch

import workers.engine.nn.kernels
import workers.engine.training.loop  # noqa: F401  # all methods

MAX_REQUEST_BYTES = 1 << 16
READY = b"ready"
"""The first message, once all is loaded."""
TITLE_BYTES = 1024
"""Length of the padding in the server's command line, over which an engine writes its own."""

_ENVIRONMENTS = (
    "workers.engine.envs.atari",
    "workers.engine.envs.gymnasium_env",
    "gymnasium.envs.classic_control",
)
"""The common ones. Others are loaded by the engines that play them, custom ones always."""
_GO = b"go"
_ARGUMENTS_AT = 45
"""Index of the addresses of the command line in /proc/self/stat, counted after the process's name."""


def serve(requests: socket.socket) -> list[str] | None:
    """Fork an engine for each request.

    Args:
        requests: one end of a pair of sockets that keep message boundaries.

    Returns:
        In an engine, its arguments. In the server None, when there will be no more requests.
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
    requests.send(READY)
    while True:
        message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, 3)
        if not message:
            return None
        if (n := len(os.listdir("/proc/self/task"))) != 1:
            raise RuntimeError(f"the engine server has {n} threads, so it cannot fork")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            try:
                is_engine = _fork_twice(theirs)
            except OSError as error:
                requests.send(_failed(error))
                is_engine = False
            else:
                if is_engine:
                    ours.close()
                    requests.close()
                    return _become_engine(json.loads(message), descriptors, theirs)
                theirs.close()
                requests.send(ours.recv(MAX_REQUEST_BYTES))
                with suppress(OSError):  # it failed
                    ours.send(_GO)
        for descriptor in descriptors:
            os.close(descriptor)


def _fork_twice(theirs: socket.socket) -> bool:
    """Fork a process that the server is no parent of; return whether this is it.

    Args:
        theirs: that process's socket to the server, which receives why it could not be forked.

    Raises:
        OSError: no process can be started.
    """
    if process := os.fork():
        os.waitpid(process, 0)  # when it has exited, its child has another parent
        return False
    try:
        if os.fork():
            os._exit(0)
    except OSError as error:
        theirs.send(_failed(error))
        os._exit(1)
    return True


def _become_engine(arguments: list[str], descriptors: Sequence[int], server: socket.socket) -> list[str]:
    """Make this process like one that the worker has started with these descriptors; return its arguments."""
    os.setsid()
    for standard, descriptor in enumerate(descriptors[:2], 1):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    for descriptor in descriptors[2:]:
        arguments += ["--control-fd", str(descriptor)]
    # The generators of `random` do it themselves. PyTorch's has the same seed in every process.
    np.random.seed()
    torch.default_generator.manual_seed(torch.initial_seed())
    n_before = len(sys.orig_argv) - len(sys.argv) + 1
    sys.argv[1:] = sys.orig_argv[n_before:] = arguments
    _show(sys.orig_argv)
    server.send(str(os.getpid()).encode())
    if server.recv(len(_GO)) != _GO:
        os._exit(1)  # the server has died: the worker may not know this engine
    server.close()
    return arguments


def _show(command: Sequence[str]) -> None:
    """Have the system show this command for this process: it is written over that of the server."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = (int(field) for field in fields[_ARGUMENTS_AT : _ARGUMENTS_AT + 2])
    # A last byte other than 0 marks a text that ends at the first 0.
    title = os.fsencode(" ".join(command))[: end - start - 2].ljust(end - start - 1, b"\0") + b" "
    ctypes.memmove(start, title, len(title))


def _failed(error: OSError) -> bytes:
    return str(-(error.errno or 1)).encode()
