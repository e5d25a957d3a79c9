"""JSON patch (RFC 6902) and JSON merge patch (RFC 7386). Pure: the document given is never changed, and the result shares what no
operation names.

As in Kubernetes, `replace` adds a member that an object lacks. Other operations need what they name.
A merge patch grows a document by its own size at most. A JSON patch can double a document with each copy, so it has limits, and they
are those of kube-apiserver.
"""

from collections.abc import Callable, Sequence
from typing import Any

import orjson

from paddock.base.errors import Terminal
from paddock.base.jsondata import CONTAINERS, copied

MOST_OPERATIONS = 10_000
# Bytes that all copies of one patch may add.
MOST_COPIED = 3 * 1024 * 1024
# Entries of lists that all insertions and removals of one patch may shift: ten thousand operations in a list of six thousand.
MOST_SHIFTED = 64 * 1024 * 1024


class BadPatch(Terminal):
    """The patch does not fit the document, or is none."""


class PatchTooLarge(BadPatch):
    """The patch has more operations than are read."""


class _Expense:
    """The cost of a patch so far; raises `BadPatch` when it has cost too much."""

    def __init__(self) -> None:
        self._copied = 0
        self._shifted = 0

    def copy(self, value: Any) -> None:
        """Count a copy. The JSON of a value says how large it is."""
        try:
            size = len(orjson.dumps(value))
        except orjson.JSONEncodeError:
            # Earlier operations can nest a value deeper than any body is read.
            raise BadPatch("Unable to complete the copy, the value is nested too deep") from None
        self._copied += size
        if self._copied > MOST_COPIED:
            why = f"the accumulated size increase of copy is {self._copied}, exceeding the limit {MOST_COPIED}"
            raise BadPatch(f"Unable to complete the copy, {why}")

    def shift(self, entries: int) -> None:
        self._shifted += entries
        if self._shifted > MOST_SHIFTED:
            raise BadPatch(f"the operations shift more than {MOST_SHIFTED} entries of lists; replace the list as a whole")


class _Draft:
    """A document while it changes. An object or list is copied before its first change; all others are those of the original."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self.expense = _Expense()
        # What was copied, by its id. The parent of what stands here stands here, too.
        self._own: dict[int, Any] = {}

    def place(self, pointer: list[str]) -> Any:
        """Return the object or list at a path, ready to be changed."""
        _find(self.document, pointer)
        self.document = place = self._owned(self.document)
        for token in pointer:
            key = token if isinstance(place, dict) else int(token)
            place[key] = member = self._owned(place[key])
            place = member
        return place

    def share(self, value: Any) -> None:
        """Let a value stand in two places: a change of one of them copies it again."""
        if self._own.pop(id(value), None) is None:
            return
        for member in value.values() if isinstance(value, dict) else value:
            if isinstance(member, CONTAINERS):
                self.share(member)

    def _owned(self, value: Any) -> Any:
        if id(value) in self._own or not isinstance(value, CONTAINERS):
            return value
        made = value.copy()
        self._own[id(made)] = made
        return made


class TestFailed(BadPatch):
    """A test of the patch says that the document is another one."""


def apply_merge_patch(document: Any, patch: Any) -> Any:
    """The document with the members of the patch; null deletes, lists are replaced. What the patch does not name is the document's own."""
    if not isinstance(patch, dict):
        return copied(patch)
    result = dict(document) if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result


def merge_patch_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """The JSON Merge Patch that makes one document of another; empty when they are the same. A null in `after` counts as absent."""
    patch: dict[str, Any] = {}
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := merge_patch_between(old, new):
                patch[key] = inner
        elif type(old) is not type(new) or old != new:
            patch[key] = new
    return patch


def apply_json_patch(document: Any, operations: Sequence[Any]) -> Any:
    """The document after all operations, or `BadPatch` at the first that does not fit."""
    if len(operations) > MOST_OPERATIONS:
        raise PatchTooLarge(f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}")
    draft = _Draft(document)
    for index, operation in enumerate(operations):
        if not isinstance(operation, dict) or not isinstance(operation.get("op"), str) or not isinstance(operation.get("path"), str):
            raise BadPatch(f"operation {index} needs an op and a path")
        perform = _OPERATIONS.get(operation["op"])
        if perform is None:
            raise BadPatch(f"operation {index}: unknown op {operation['op']!r}")
        try:
            perform(draft, operation)
        except BadPatch as error:
            raise (TestFailed if isinstance(error, TestFailed) else BadPatch)(f"operation {index}: {error.what}") from None
    return draft.document


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise BadPatch(f"{operation['op']} needs a value")
    return copied(operation["value"])


def _pointer(operation: dict[str, Any], key: str = "path") -> list[str]:
    text = operation.get(key)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise BadPatch(f"{operation['op']} operation does not apply: {key} {text!r} is not a JSON pointer")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _index(items: list[Any], token: str, *, end: int) -> int:
    if token == "-" and end == len(items):
        return end
    if not token.isascii() or not token.isdecimal() or (len(token) > 1 and token.startswith("0")) or len(token) > 9 or int(token) > end:
        raise BadPatch(f"{token!r} is not an index of a list of {len(items)}")
    return int(token)


def _find(document: Any, pointer: list[str]) -> Any:
    for token in pointer:
        if isinstance(document, dict):
            if token not in document:
                raise BadPatch(f"the path /{'/'.join(pointer)} does not exist")
            document = document[token]
        elif isinstance(document, list):
            document = document[_index(document, token, end=len(document) - 1)]
        else:
            raise BadPatch(f"the path /{'/'.join(pointer)} does not exist")
    return document


def _put(draft: _Draft, pointer: list[str], value: Any, *, shifts: bool) -> None:
    """Add a value; without `shifts`, replace the one that stands in a list there."""
    if not pointer:
        draft.document = value
        return
    place, last = draft.place(pointer[:-1]), pointer[-1]
    if isinstance(place, dict):
        place[last] = value
    elif not isinstance(place, list):
        raise BadPatch(f"the path /{'/'.join(pointer)} does not exist")
    elif shifts:
        index = _index(place, last, end=len(place))
        draft.expense.shift(len(place) - index)
        place.insert(index, value)
    else:
        place[_index(place, last, end=len(place) - 1)] = value


def _take(draft: _Draft, pointer: list[str]) -> None:
    if not pointer:
        raise BadPatch("the whole document cannot be removed")
    _find(draft.document, pointer)
    place, last = draft.place(pointer[:-1]), pointer[-1]
    if isinstance(place, list):
        index = int(last)
        draft.expense.shift(len(place) - index)
        del place[index]
    else:
        del place[last]


def _add(draft: _Draft, operation: dict[str, Any]) -> None:
    _put(draft, _pointer(operation), _value(operation), shifts=True)


def _replace(draft: _Draft, operation: dict[str, Any]) -> None:
    _put(draft, _pointer(operation), _value(operation), shifts=False)


def _remove(draft: _Draft, operation: dict[str, Any]) -> None:
    _take(draft, _pointer(operation))


def _move(draft: _Draft, operation: dict[str, Any]) -> None:
    source, target = _pointer(operation, "from"), _pointer(operation)
    if target[: len(source)] == source and target != source:
        raise BadPatch("a value cannot be moved into itself")
    value = _find(draft.document, source)
    _take(draft, source)
    _put(draft, target, value, shifts=True)


def _copy(draft: _Draft, operation: dict[str, Any]) -> None:
    value = _find(draft.document, _pointer(operation, "from"))
    draft.expense.copy(value)
    draft.share(value)
    _put(draft, _pointer(operation), value, shifts=True)


def _test(draft: _Draft, operation: dict[str, Any]) -> None:
    pointer, wanted = _pointer(operation), _value(operation)
    place = _find(draft.document, pointer[:-1]) if pointer else draft.document
    if wanted is None and pointer and isinstance(place, dict) and pointer[-1] not in place:
        # An API server takes null for absent, and clients test so before they add a member.
        return
    if not _equal(_find(draft.document, pointer), wanted):
        raise TestFailed(f"testing path {operation['path']} failed: the value is another one")


def _equal(left: Any, right: Any) -> bool:
    """JSON equality: true is not 1, at any depth."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return bool(left == right)


_OPERATIONS: dict[str, Callable[[_Draft, dict[str, Any]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
