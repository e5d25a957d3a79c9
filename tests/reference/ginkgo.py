"""The names of the cases in a Go file of Ginkgo tests, without running it.

A case is named after its containers: `with a disk / should start`. Tags in brackets are left out, except for the numbers of tests;
the outermost container is the file's own and says nothing more. A name that comes again in a file gets a number.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import count

_TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|\s+)|"(?:\\.|[^"\\])*"|`[^`]*`|'(?:\\.|[^'\\])+'|[A-Za-z_][\w.]*|.""",
    re.DOTALL,
)
_CONTAINERS = (
    "Describe",
    "Context",
    "When",
    "DescribeTable",
    "DescribeTableSubtree",
    "FContext",
    "PContext",
    "PDescribe",
    "PDescribeTable",
)
_LEAVES = ("It", "Entry", "PIt", "FIt", "PEntry", "Specify")
_TAG = re.compile(r"\[(?!test_id|QUARANTINE)[^\]]*\]\s*")


def names(source: str) -> list[str]:
    """Every case of a file, in order."""
    found: dict[str, None] = {}
    for name in _cases([match[0] for match in _TOKEN.finditer(source) if not match["skip"]]):
        again = (f"{name} ({number})" for number in count(2))
        found[name if name not in found else next(each for each in again if each not in found)] = None
    return list(found)


def _cases(tokens: Sequence[str]) -> Iterator[str]:
    around: list[tuple[int, str]] = []
    depth = 0
    for place, token in enumerate(tokens):
        if token == "(":
            depth += 1
            word = tokens[place - 1].rsplit(".", 1)[-1] if place else ""
            if word in _LEAVES:
                yield " / ".join(name for name in (*(each for _, each in around[1:]), _text(tokens, place + 1)) if name)
            elif word in _CONTAINERS or word.endswith("Describe"):
                around.append((depth, _text(tokens, place + 1)))
        elif token == ")":
            if around and around[-1][0] == depth:
                around.pop()
            depth -= 1


def _text(tokens: Sequence[str], place: int) -> str:
    """The first argument: its texts as they are, what is computed in angle brackets."""
    said: list[str] = []
    depth = 0
    while depth or tokens[place] not in (",", ")"):
        token = tokens[place]
        depth += (token in "([{") - (token in ")]}")
        said.append(token[1:-1] if token[0] in '"`' else "" if token == "+" else f"<{token}>")
        place += 1
    return " ".join(_TAG.sub("", "".join(said)).split())
