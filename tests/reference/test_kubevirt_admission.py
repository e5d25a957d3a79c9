"""KubeVirt's own webhooks still say of the variants what is recorded for the unit tests (`unit/kubevirt/kinds/admission`)."""

import pytest

from tests.kit.declarations import kubevirtvariants
from tests.reference import kubevirtadmission
from tests.reference.build import built
from tests.reference.recipes import KUBEVIRT_ADMISSION

pytestmark = [pytest.mark.reference, pytest.mark.long]


def test_the_recorded_verdicts_are_kubevirts(pytestconfig: pytest.Config) -> None:
    terminal = pytestconfig.pluginmanager.getplugin("terminalreporter")
    programs = built(KUBEVIRT_ADMISSION, say=terminal.write_line if terminal else print)
    text = kubevirtadmission.recorded(kubevirtadmission.verdicts(programs / "admission"))
    if pytestconfig.getoption("golden_update"):
        kubevirtvariants.VERDICTS.write_text(text)
    assert kubevirtvariants.VERDICTS.read_text() == text
