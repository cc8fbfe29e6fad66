"""Processes from a fork server that play for the engine, and what becomes of them. Needs no torch."""

from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess

END_TIMEOUT_S = 10.0
MAX_FRUITLESS_DEATHS = 3
"""One that is killed so often in a row before it has done a thing will not do better."""

_FORKSERVER_DIED = 255


class HelperFailedError(RuntimeError):
    """A helper ended by itself, or was killed too often before it had done a thing."""


@dataclass(frozen=True)
class Helper:
    """One process, and how many before it in its place died before they had done a thing."""

    process: ForkServerProcess
    fruitless_deaths: int = 0

    def reap(self) -> None:
        """Wait for its end, which it was asked for; kill it where it does not come."""
        self.process.join(END_TIMEOUT_S)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()

    def mourn(self, *, fruitless: bool) -> tuple[str, int]:
        """Judge the end of one that was not asked for.

        Args:
            fruitless: whether it had done nothing yet.

        Returns:
            What happened, for the log, and the fruitless deaths that the one in its place begins with.

        Raises:
            HelperFailedError: it was not killed, but ended; or too many before it did nothing either.
        """
        self.reap()
        name, code = self.process.name, self.process.exitcode
        if code is None or 0 <= code < _FORKSERVER_DIED:
            raise HelperFailedError(f"{name} ended with exit status {code}")
        how = f"was killed by signal {-code}" if code < 0 else "died with its fork server"
        deaths = self.fruitless_deaths + 1 if fruitless else 0
        if deaths >= MAX_FRUITLESS_DEATHS:
            raise HelperFailedError(f"{name} {how}, as those before it, before it had done a thing")
        return f"{name} {how}; another takes its place", deaths


def fork_server(*preload: str) -> ForkServerContext:
    """Where helpers come from; modules that each of them needs are loaded once."""
    context = get_context("forkserver")
    worlds = ("workers.engine.envs.atari", "workers.engine.envs.classic")
    context.set_forkserver_preload(["__main__", *preload, *worlds])
    return context
