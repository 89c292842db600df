"""What BLAS threads cost a first study while every core is busy: default threads over one thread.

    python benchmarks/threads.py            the README's example, three times each, in turns
    python benchmarks/threads.py --times 1

The ratio should be near 1, below 1.3: the library takes one thread by itself. Wall time, for that
is what spinning threads take from everyone.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def busy(processes: int) -> Generator[None]:
    """So many other processes that never rest."""
    others = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(processes)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def seconds(code: str, *, pinned: bool) -> float:
    """How long a fresh process takes for this code."""
    given = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    given |= dict.fromkeys(SETTINGS, "1") if pinned else {}
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", code], env=given, cwd=folder, check=True, capture_output=True
        )
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=3)
    times = parser.parse_args().times
    code = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)[0]
    taken: dict[bool, list[float]] = {True: [], False: []}
    with busy(os.cpu_count() or 1):
        for _ in range(times):
            for pinned, found in taken.items():
                found.append(seconds(code, pinned=pinned))
    one, default = (statistics.median(found) for found in taken.values())
    print(f"one thread {one:.1f} s, default threads {default:.1f} s, ratio {default / one:.2f}")


if __name__ == "__main__":
    main()
