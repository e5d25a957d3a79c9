"""Keeping what is secret in a machine's spec out of every text that is shown: logs, events, conditions."""

import base64
import json
import re
from collections.abc import Iterable, Iterator

from paddock.dialects.core.secret import Secret
from paddock.dialects.stakater.virtualmachine import StakaterVirtualMachine
from paddock.meta.objects import Resource

SHOWN_INSTEAD = "(not shown)"
# A shorter piece could stand in any text by chance.
_SHORTEST_LINE = 6
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,}={0,2}")


def hidden(text: str, vm: StakaterVirtualMachine, made: Iterable[Resource] = ()) -> str:
    """The text without the password, the user data and the keys, in whatever form `made` has them; also where they are in base64."""
    plain = {*_pieces(vm), *_values(made)}
    pieces = sorted(plain | {json.dumps(each)[1:-1] for each in plain}, key=len, reverse=True)
    text = _BASE64.sub(lambda found: SHOWN_INSTEAD if _hides(found.group(), pieces) else found.group(), text)
    for piece in pieces:
        # The ends of a word, where the piece has them: a password of one letter does not eat up the text.
        pattern = rf"(?<!\w){re.escape(piece)}(?!\w)" if len(piece) < _SHORTEST_LINE else re.escape(piece)
        text = re.sub(pattern, SHOWN_INSTEAD, text)
    return text


def _hides(word: str, pieces: list[str]) -> bool:
    """Whether a word in base64 says one of the pieces."""
    try:
        said = base64.b64decode(word, validate=True).decode()
    except ValueError:
        return False
    return any(piece in said for piece in pieces)


def _pieces(vm: StakaterVirtualMachine) -> Iterator[str]:
    parameters = vm.spec.parameters
    if parameters.cloudInit.password:
        yield parameters.cloudInit.password
    yield from _lines(parameters.cloudInit.userData or "")
    for word in (parameters.sshPublicKey.data or "").split():
        if len(word) > 2 * _SHORTEST_LINE:
            yield word


def _values(made: Iterable[Resource]) -> Iterator[str]:
    """The values of the Secrets: a document may spell a password in its own way."""
    for each in made:
        if isinstance(each, Secret):
            for value in (each.stringData or {}).values():
                yield value
                yield from _lines(value)
                # Of a key its middle is what is known to be long.
                yield from (word for word in value.split() if len(word) > 4 * _SHORTEST_LINE)


def _lines(document: str) -> Iterator[str]:
    for line in document.splitlines():
        if len(line.strip()) >= _SHORTEST_LINE and not line.startswith("#"):
            yield line.strip()
