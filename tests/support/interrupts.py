"""Interrupt a call before any one of its bytecodes, as a key or a timer would."""

import contextlib
import sys
from pathlib import Path

import discreet

#: Where interrupts strike: in our code, and in the context managers that it uses.
PLACES = (str(Path(discreet.__file__).parent), contextlib.__file__)


class Struck(BaseException):
    """The interrupt; no code expects it."""


def is_ours(frame):
    """Whether to strike here; not in a finalizer, where Python drops what is raised."""
    if not frame.f_code.co_filename.startswith(PLACES):
        return False
    while frame is not None and frame.f_code.co_name != "__del__":
        frame = frame.f_back
    return frame is None


def strike(call, at=None):
    """Call, and interrupt it before bytecode number `at`; which bytecodes there were, in order."""
    seen = []

    def trace(frame, event, _):
        if event == "call" and not is_ours(frame):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if event == "opcode":
            if len(seen) == at:
                raise Struck
            seen.append((frame.f_code, frame.f_lasti))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def is_struck(call, at):
    """Whether the interrupt left the call; nothing of its traceback is kept."""
    try:
        strike(call, at)
    except Struck:
        return True
    return False


def moments(call):
    """When to strike: before every bytecode's first and last turn, whatever loop it is in."""
    seen = strike(call)
    first = {place: at for at, place in reversed([*enumerate(seen)])}
    last = {place: at for at, place in enumerate(seen)}
    return sorted({*first.values(), *last.values()})
