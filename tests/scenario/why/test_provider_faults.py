"""Every fault over VirtRigaud's providers is injected, and `paddock why` names its cause first."""

import pytest

from paddock.cli.diagnosis.explain import Explanation, explain
from paddock.cli.diagnosis.table import every
from paddock.cli.names import candidates
from paddock.cli.serverreader import ServerReader
from paddock.client.client import Client
from tests import virtualtime
from tests.scenario.why.provider_faults import PROVIDER_FAULTS, ProviderFault
from tests.scenario.why.rigaud_operation_faults import RIGAUD_OPERATION_FAULTS
from tests.unit.controllers.rigaudharness import Rigaud, rigaud

FAULTS = (*PROVIDER_FAULTS, *RIGAUD_OPERATION_FAULTS)


async def asked(life: Rigaud, text: str) -> Explanation:
    """Return the explanation of `paddock why`."""
    reading = ServerReader(Client(life.wire), life.clock)
    found = await reading.find(candidates(text, "default"))
    assert found, f"there is no {text}"
    return explain(await reading.gather(found[0]), found[0])


def test_there_are_enough_faults() -> None:
    """Each of them is a test of its own, and has to be named rightly: more than the 95 % of 60 that were promised."""
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) and len(PROVIDER_FAULTS) >= 60
    assert {fault.cause for fault in FAULTS} <= set(every())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_the_right_cause_comes_first(fault: ProviderFault) -> None:
    async def script() -> None:
        async with rigaud(fault.fake, world=False) as life:
            await fault.inject(life)
            check(fault, await asked(life, fault.ask))

    virtualtime.run(script())


def check(fault: ProviderFault, answer: Explanation) -> None:
    told = [(each.rule, str(each.node.ref), each.cause) for each in answer.findings]
    assert answer.cause is not None, answer
    assert (answer.cause.rule, str(answer.cause.node.ref)) == (fault.cause, fault.of), told
    assert answer.state == fault.state, told
