"""Ansible with kubevirt.core and kubernetes.core, as docs/manifests/ansible.md uses them."""

from collections.abc import Callable

import pytest

from tests.kit.pages import Reader
from tests.reference.clients import venv
from tests.reference.pages.conftest import DOCS

pytestmark = [pytest.mark.reference, pytest.mark.long]


def test_the_page(reader: Callable[..., Reader], pytestconfig: pytest.Config) -> None:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    python = venv.python(terminal.write_line if terminal else print, requirements=venv.ANSIBLE)
    # Modules run in the interpreter that finds the Kubernetes client.
    reader(python.parent, ANSIBLE_PYTHON_INTERPRETER=str(python), ANSIBLE_NOCOLOR="1").follow(DOCS / "manifests/ansible.md")
