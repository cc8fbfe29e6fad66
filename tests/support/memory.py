"""Memory of processes and all their descendants, as the kernel counts it."""

from collections import defaultdict
from contextlib import suppress
from pathlib import Path

import psutil

_KIB = 1024
_SHARED_MEMORY = ("/memfd:", "/dev/shm/", "/dev/zero")  # counted with the processes' own pages
_FILES_EVERY = 4
"""Of so many samples one reads which pages of files are resident, which takes longest."""


class PeakMemory:
    """The most memory that processes and their descendants have had together, in `bytes`.

    The proportional set size (PSS) counts a page once that several processes share. Pages of files, such as
    libraries, count once for all of these processes, also where other programs of the machine share them:
    the PSS alone would depend on what else runs.
    """

    def __init__(self, *pids: int) -> None:
        self.bytes = 0
        self._roots = [psutil.Process(pid) for pid in pids]
        self._samples = 0
        self._files: defaultdict[str, int] = defaultdict(int)

    def sample(self) -> None:
        """Read the present memory."""
        own = 0
        for root in self._roots:
            with suppress(psutil.NoSuchProcess):
                for process in (root, *root.children(recursive=True)):
                    with suppress(OSError):  # it has just exited
                        own += own_bytes(process.pid)
                        if self._samples % _FILES_EVERY == 0:
                            self._read_files(process.pid)
        self._samples += 1
        self.bytes = max(self.bytes, own + sum(self._files.values()))

    def _read_files(self, pid: int) -> None:
        n_bytes: defaultdict[str, int] = defaultdict(int)
        file = ""
        for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
            name, *values = line.split(maxsplit=5)
            if not name.endswith(":"):  # a mapping: addresses, permissions, offset, device, inode, path
                file = values[-1] if len(values) == 5 and not values[-1].startswith(_SHARED_MEMORY) else ""
            elif file and name in ("Rss:", "Anonymous:"):
                n_bytes[file] += int(values[0]) * _KIB * (1 if name == "Rss:" else -1)
        for file, resident in n_bytes.items():
            if not file.startswith("["):
                self._files[file] = max(self._files[file], resident)


def own_bytes(pid: int) -> int:
    """PSS of a process without pages of files."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    values = dict(line.split(":", 1) for line in lines)
    return sum(int(values[name].split()[0]) * _KIB for name in ("Pss_Anon", "Pss_Shmem"))
