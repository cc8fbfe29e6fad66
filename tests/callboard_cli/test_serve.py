import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from callboard_cli.serve import MEMORY_ARENAS

THREADS = """
import ctypes, sys
from threading import Barrier, Thread
from callboard_cli.serve import limit_memory_arenas

if sys.argv[2:] == ["limited"]:
    limit_memory_arenas()
libc = ctypes.CDLL(None)
libc.malloc.argtypes, libc.malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
barrier = Barrier(8)

def allocate():
    barrier.wait()
    for _ in range(100):
        libc.malloc(10_000)
    barrier.wait()

threads = [Thread(target=allocate) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
file = ctypes.c_void_p(libc.fopen(sys.argv[1].encode(), b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no arenas")
@pytest.mark.service
def test_threads_of_the_web_process_share_few_arenas(tmp_path: Path) -> None:
    def n_arenas(*arguments: str) -> int:
        path = tmp_path / "info.xml"
        subprocess.run([sys.executable, "-c", THREADS, str(path), *arguments], check=True)
        return len(re.findall("<heap nr=", path.read_text()))

    assert n_arenas() > MEMORY_ARENAS
    assert n_arenas("limited") <= MEMORY_ARENAS
