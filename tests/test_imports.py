"""`import discreet` is light: numpy, scipy, threadpoolctl and the standard library."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PROBE = """
import json, sys
before = set(sys.modules)
import discreet
for name in discreet.__all__:  # names load when they are used
    getattr(discreet, name)
found = {}
for name in sorted(set(sys.modules) - before):
    top = name.partition(".")[0]
    if top not in sys.stdlib_module_names:
        found.setdefault(top, getattr(sys.modules[name], "__file__", None))
print(json.dumps(found))
"""


def imported(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def belongs(name, file, packages):
    """Whether a module is one of the packages, or a part of one under another name.

    Compiled parts of numpy and scipy register helpers (`_cython_3_1_2`, `_cyutility`) at the top;
    `_sysconfigdata_...` is the standard library's, though not in its list of names.
    """
    if name in packages or file is None:
        return True
    parts = [Path(sysconfig.get_path("stdlib")) / Path(file).name]
    parts += [Path(sysconfig.get_path("platlib")) / package for package in packages]
    return any(Path(file).is_relative_to(part) for part in parts)


def test_the_names_of_discreet_load_its_dependencies_and_the_standard_library_alone():
    found = imported(PROBE)
    needed = {"discreet", "numpy", "scipy", "threadpoolctl"}
    assert needed <= set(found)
    packages = (*needed, "charset_normalizer")  # numpy takes it if it is there
    assert [name for name, file in found.items() if not belongs(name, file, packages)] == []


def test_importing_discreet_alone_loads_nothing_heavy():
    code = "import json, sys, discreet; print(json.dumps(sorted(sys.modules)))"
    assert not {"numpy", "scipy", "threadpoolctl"} & set(imported(code))


def test_the_probe_would_notice_another_package():
    found = imported(PROBE.replace("import discreet\n", "import discreet, rich.table\n"))
    assert not belongs("rich", found["rich"], ("discreet", "numpy", "scipy"))


def test_the_public_names_are_there():
    import discreet

    for name in discreet.__all__:
        assert getattr(discreet, name).__doc__
    assert sorted(discreet.__all__) == discreet.__all__
    assert set(discreet.__all__) <= set(dir(discreet))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        discreet.nonsense  # noqa: B018
