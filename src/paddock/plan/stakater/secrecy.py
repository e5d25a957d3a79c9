"""Keeping what is secret in a machine's spec out of every text that is shown: logs, events, conditions."""

import json
import re
from collections.abc import Iterator

from paddock.dialects.stakater.virtualmachine import VirtualMachine

SHOWN_INSTEAD = "(not shown)"
# A shorter piece could stand in any text by chance.
_SHORTEST_LINE = 6


def hidden(text: str, vm: VirtualMachine) -> str:
    """The text without the password, the lines of the user data and the keys."""
    for piece in sorted(set(_pieces(vm)), key=len, reverse=True):
        for form in (piece, json.dumps(piece)[1:-1]):
            # The ends of a word, where the piece has them: a password of one letter does not eat up the text.
            pattern = rf"(?<!\w){re.escape(form)}(?!\w)" if len(form) < _SHORTEST_LINE else re.escape(form)
            text = re.sub(pattern, SHOWN_INSTEAD, text)
    return text


def _pieces(vm: VirtualMachine) -> Iterator[str]:
    parameters = vm.spec.parameters
    if parameters.cloudInit.password:
        yield parameters.cloudInit.password
    for line in (parameters.cloudInit.userData or "").splitlines():
        if len(line.strip()) >= _SHORTEST_LINE and not line.startswith("#"):
            yield line.strip()
    for line in (parameters.sshPublicKey.data or "").split():
        if len(line) > 2 * _SHORTEST_LINE:
            yield line
