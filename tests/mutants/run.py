"""`make mutants`: break the code, one mutant at a time, and see that each catcher fails."""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
WORKERS = 2
#: pytest's exit codes.
PASSED, FAILED = 0, 1


def main(words: list[str]) -> int:
    """Try the mutants whose names contain all of these words; how many were missed."""
    chosen = [each for each in MUTANTS if all(word in each.name for word in words)]
    catchers = sorted({catcher for each in chosen for catcher in each.catchers})
    if run(ROOT / "src", *catchers) != PASSED:
        print("the catchers fail on the code as it is: repair that first")
        return 1
    missed = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        for mutant, survived in zip(chosen, pool.map(survivors, chosen), strict=True):
            missed += bool(survived)
            print(f"{'MISSED by ' + ', '.join(survived) if survived else 'caught'}: {mutant.name}")
    print(f"{len(chosen) - missed} of {len(chosen)} mutants caught")
    return missed


def survivors(mutant: Mutant) -> list[str]:
    """The catchers that did not fail by an assertion or an error of the mutant's."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        apply(mutant, source)
        return [catcher for catcher in mutant.catchers if run(source, catcher) != FAILED]


def apply(mutant: Mutant, source: Path) -> None:
    """Break the code under `source`."""
    path = source / "discreet" / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.name}: what it replaces occurs {text.count(mutant.old)} times")
    path.write_text(text.replace(mutant.old, mutant.new))


def run(source: Path, *catchers: str) -> int:
    """The exit code of pytest on these nodes, with this source."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", *catchers]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
