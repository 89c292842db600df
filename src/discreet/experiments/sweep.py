"""Sweeps: many independent runs, each a line of a file, on one machine or on many.

A sweep is a list of jobs and a pure function from a job to its row. Both are frozen dataclasses; a
row is its job and what came of it, so its first fields are the job's. Only jobs without a row in
the file are played. A row is on the disk as soon as it is here, so stopping costs the runs that
were under way and no other; at the end the file is sorted and replaced as a whole. A job carries
its seed and every worker has one BLAS thread, so where a job is played does not show in its row.

Local processes come from joblib. On a cluster we use Dask's own futures rather than joblib's
backend for it: when a run has lost more workers than Dask allows, a future says so, where joblib
1.6 waits for ever, because its callback is only called with results.
"""

import csv
import io
import os
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import astuple, fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from joblib import Parallel, delayed  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.threads import one_thread

Job = TypeVar("Job")
Row = TypeVar("Row")

#: Called with the number of finished runs, of how many, and the newest row (None at the start).
Heard = Callable[[int, int, Any], None]
#: How long to look for a cluster, and how long processes outlive a sweep that was killed: seconds.
PATIENCE, IDLE = 10.0, 10.0


def sweep(
    kind: type[Row],
    path: Path,
    jobs: Sequence[Job],
    play: Callable[[Job], Row],
    *,
    workers: int = 1,
    cluster: str | None = None,
    known: Iterable[Row] = (),
    heard: Heard = lambda done, total, row: None,
) -> list[Row]:
    """The rows of these jobs, in their order; those that the file lacks are played first.

    Rows `known` from elsewhere are taken over where they are wanted.
    """
    checks.count("workers", workers)
    if not jobs:
        return []
    found, job_kind, wanted = read_runs(kind, path), type(jobs[0]), set(jobs)
    rows = {job: row for row in known if (job := job_of(job_kind, row)) in wanted}
    rows |= {job_of(job_kind, row): row for row in found}
    missing = [job for job in dict.fromkeys(jobs) if job not in rows]
    if missing or len(rows) > len(found):
        write_runs(kind, path, _sorted(rows.values()))
    if missing:
        heard(0, len(missing), None)
        finished = _on_cluster(cluster, missing, play) if cluster else _here(workers, missing, play)
        with closing(finished):
            for count, row in enumerate(finished, start=1):
                append_run(path, row)
                rows[job_of(job_kind, row)] = row
                heard(count, len(missing), row)
        write_runs(kind, path, _sorted(rows.values()))
    return [rows[job] for job in jobs]


def said(done: int, total: int, row: object) -> None:
    """Progress as lines on the error stream."""
    sys.stderr.write(f"{total} runs to play\n" if row is None else f"{done} of {total}: {row}\n")
    sys.stderr.flush()


def job_of(kind: type[Job], row: object) -> Job:
    """The job that a row came from."""
    names = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    return kind(*(getattr(row, name) for name in names))


def _sorted(rows: Iterable[Row]) -> list[Row]:
    def key(row: Any) -> tuple[Any, ...]:
        return astuple(row)

    return sorted(rows, key=key)


def _pinned(play: Callable[[Job], Row], job: Job) -> Row:
    """Matrices are small, and with two BLAS threads sums come out in another order."""
    with one_thread:
        return play(job)


def _here(workers: int, jobs: Sequence[Job], play: Callable[[Job], Row]) -> Generator[Row]:
    """Rows as they finish, from local processes; one worker is this process."""
    if workers == 1:
        yield from (_pinned(play, job) for job in jobs)
        return
    make: Any = Parallel
    parallel = make(
        n_jobs=workers,
        backend="loky",
        batch_size=1,
        return_as="generator_unordered",
        idle_worker_timeout=IDLE,
    )
    yield from parallel(delayed(_pinned)(play, job) for job in jobs)


def _on_cluster(address: str, jobs: Sequence[Job], play: Callable[[Job], Row]) -> Generator[Row]:
    """Rows as they finish, from a Dask cluster; a run whose worker dies is played again."""
    try:
        from distributed import Client, KilledWorker, as_completed
    except ImportError:
        raise InvalidArgument("cluster", "the package distributed to be installed") from None
    try:
        client: Any = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InvalidArgument("cluster", f"the address of a Dask scheduler ({error})") from None
    with client:
        futures = [client.submit(_pinned, play, job, pure=False) for job in jobs]
        arriving: Any = as_completed(futures, loop=client.loop)
        for future in arriving:
            try:
                yield future.result()
            except KilledWorker:
                raise InvalidArgument(
                    "cluster", "workers that outlive a run: one lost several"
                ) from None
            future.release()


# -- finished runs as lines of a CSV file: one frozen dataclass a line, whole or not at all


def read_runs(kind: type[Row], path: Path) -> list[Row]:
    """The runs that a file holds; none where there is no file.

    A last line without its end was being written when the writer was killed: it is not a run.
    """
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0].decode("utf-8")
    head, *rows = list(csv.reader(io.StringIO(whole))) or [[]]
    hints = get_type_hints(kind)
    if head != list(hints):
        raise InvalidArgument("table", "a table that this program wrote", str(path))
    readers: list[Any] = [hint if hint in (int, float) else str for hint in hints.values()]
    try:
        return [
            kind(*(read(text) for read, text in zip(readers, row, strict=True))) for row in rows
        ]
    except ValueError as error:
        raise InvalidArgument("table", f"a table that this program wrote ({error})") from None


def write_runs(kind: type[Row], path: Path, runs: Iterable[Row]) -> None:
    """Every run, in the order given; an earlier file is replaced whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    names = [field.name for field in fields(kind)]  # pyright: ignore[reportArgumentType]
    draft.write_bytes(_line(names) + b"".join(_line(_values(run)) for run in runs))
    draft.replace(path)


def append_run(path: Path, run: object) -> None:
    """One more line at the end of a file that `write_runs` began, on the disk before it returns."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, _line(_values(run)))
        os.fsync(file)
    finally:
        os.close(file)


def _values(run: object) -> Iterable[object]:
    return astuple(run)  # pyright: ignore[reportArgumentType]


def _line(values: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(values)
    return text.getvalue().encode("utf-8")
