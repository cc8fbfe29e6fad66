"""Children of an engine as threads of the test's process, so that it sees what they do."""

import os
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from tests.support.waiting import PATIENCE_S
from workers.engine.processes.child import FAILED, Channel, ChannelClosedError


class ThreadChild:
    """Stands in for `Child`; `own` copies arguments of which a process would have its own."""

    def __init__(
        self,
        target: Callable[..., None],
        *arguments: Any,
        name: str,
        own: Callable[[Any], Any] = lambda argument: argument,
    ) -> None:
        self.name = name
        self.process = SimpleNamespace(pid=os.getpid())
        self.channel, self._theirs = Channel.pair()
        mine = tuple(own(argument) for argument in arguments)
        self._thread = threading.Thread(target=self._run, args=(target, mine), name=name, daemon=True)
        self._thread.start()

    def join(self) -> int:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} still runs"
        self._theirs.close()
        return 0

    def _run(self, target: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        try:
            target(self._theirs, *arguments)
        except ChannelClosedError:
            return
        except Exception:
            with suppress(ChannelClosedError):
                self._theirs.send(FAILED, traceback.format_exc())
