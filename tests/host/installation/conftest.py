"""The Debian packages of this checkout, each built once for all tests."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tools.packages import deb

BuiltPackage = Callable[[str], Path]


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> BuiltPackage:
    """Return the Debian package for a version of Python."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("needs dpkg-deb: apt install dpkg")
    return cache(lambda python: deb.build(python, tmp_path_factory.mktemp("deb"), compression="none"))
