"""Call a function in a forked child."""

import json
import os
import signal
import warnings


def in_fork(call):
    """What the function returns in a child of this process; what it raises is text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads and forks: on purpose
        child = os.fork()
    if not child:
        signal.alarm(60)  # one that hangs ends, and says nothing
        try:
            said = call()
        except BaseException as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)
