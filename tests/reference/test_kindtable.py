"""The table of built-in kinds says what the Go types and a real server say."""

from pathlib import Path

import pytest

from tests.reference import kindtable
from tests.reference.build import Binaries
from tests.reference.server import running

pytestmark = pytest.mark.reference


@pytest.mark.spec("kube-api", 154)
def test_the_table_is_that_of_the_real_server(binaries: Binaries, tmp_path: Path) -> None:
    with running(binaries, tmp_path) as access:
        made = kindtable.table(access, kindtable.messages(), binaries.version)
    assert kindtable.text(made) == kindtable.TABLE.read_text(), "run python -m tests.reference.kindtable and read the difference"
