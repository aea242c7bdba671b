"""How much memory this process has used."""

import resource
from contextlib import suppress
from pathlib import Path


def peak_memory() -> int:
    """Bytes that this process has had in memory at most, pages of mapped files included.

    The kernel's own count (ru_maxrss) begins with what the process had that started this one, so it is the last resort.
    """
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
