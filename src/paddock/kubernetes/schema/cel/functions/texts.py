"""Texts: searching, changing, patterns, formats of values."""

import re
from typing import Any

from paddock.kubernetes.schema import patterns
from paddock.kubernetes.schema.cel.errors import EvaluationError
from paddock.kubernetes.schema.cel.functions import standard
from paddock.kubernetes.schema.cel.functions.function import CostBudget, Function, NotMine, pure
from paddock.kubernetes.schema.cel.values import CelType, Duration, Timestamp, is_number, no_overload

_POINTER = str.maketrans({"~": "~0", "/": "~1"})
_WHITE = " \t\n\v\f\r\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
_UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})
_LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_LONGEST_RESULT = 1_000_000


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, wanted: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(wanted, start)


def _last_index_of(text: str, wanted: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(wanted)
    if not 0 <= last <= len(text):
        raise EvaluationError(f"index out of range: {last}")
    return text.rfind(wanted, 0, last + len(wanted))


def _replace(budget: CostBudget, text: Any, old: Any, new: Any, limit: Any = -1) -> str:
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str) and type(limit) is int):
        raise NotMine(str(no_overload("replace", text, old, new)))
    times = text.count(old) if limit < 0 else min(limit, text.count(old))
    size = len(text) + times * len(new)
    if size > _LONGEST_RESULT:
        raise EvaluationError("the text would become too long")
    budget.spend(size // 10)
    return text.replace(old, new, limit)


def _split(budget: CostBudget, text: Any, separator: Any, limit: Any = -1) -> list[str]:
    if not (isinstance(text, str) and isinstance(separator, str) and type(limit) is int):
        raise NotMine(str(no_overload("split", text, separator)))
    budget.spend(len(text) // 10 + 1)
    if limit == 0:
        return []
    if not separator:
        return list(text) if limit < 0 or limit >= len(text) else [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, -1 if limit < 0 else limit - 1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    last = len(text) if end is None else end
    if not 0 <= start <= len(text) or not 0 <= last <= len(text) or start > last:
        raise EvaluationError(f"index out of range: {start if not 0 <= start <= len(text) else last}")
    return text[start:last]


def _join(budget: CostBudget, entries: Any, separator: Any = "") -> str:
    if not isinstance(entries, list) or not isinstance(separator, str) or not all(isinstance(each, str) for each in entries):
        raise NotMine(str(no_overload("join", entries)))
    budget.spend(sum(map(len, entries)) // 10 + len(entries))
    return separator.join(entries)


def _quote(text: str) -> str:
    marks = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
    return '"' + "".join(marks.get(char, char) for char in text) + '"'


def _reverse(budget: CostBudget, value: Any) -> Any:
    if not isinstance(value, str | list):
        raise no_overload("reverse", value)
    budget.spend(len(value) // 10)
    return value[::-1]


# --- patterns -----------------------------------------------------------------------------------------------------------------


def _compiled(pattern: str) -> Any:
    try:
        return patterns.compiled(pattern)
    except patterns.BadPattern as bad:
        raise EvaluationError(f"error parsing regexp: {bad.why}") from None


def _matches(budget: CostBudget, text: Any, pattern: Any) -> bool:
    if not (isinstance(text, str) and isinstance(pattern, str)):
        raise no_overload("matches", text, pattern)
    budget.spend((len(text) // 10 + 1) * (len(pattern) // 4 + 1))
    try:
        return patterns.matcher(pattern)(text)
    except patterns.BadPattern as bad:
        raise EvaluationError(f"error parsing regexp: {bad.why}") from None


def _find(budget: CostBudget, text: Any, pattern: Any) -> str:
    if not (isinstance(text, str) and isinstance(pattern, str)):
        raise no_overload("find", text, pattern)
    budget.spend((len(text) // 10 + 1) * (len(pattern) // 4 + 1))
    found = _compiled(pattern).search(text)
    return "" if found is None else str(found.group())


def _find_all(budget: CostBudget, text: Any, pattern: Any, limit: Any = -1) -> list[str]:
    if not (isinstance(text, str) and isinstance(pattern, str) and type(limit) is int):
        raise no_overload("findAll", text, pattern)
    budget.spend((len(text) // 10 + 1) * (len(pattern) // 4 + 1) + len(text))
    found = [str(each.group()) for each in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


# --- format -------------------------------------------------------------------------------------------------------------------

_CLAUSE = re.compile(r"%(?:(%)|(?:\.(\d{1,3}))?([sdfeboxX]))")


def _format(budget: CostBudget, text: Any, values: Any) -> str:
    if not (isinstance(text, str) and isinstance(values, list)):
        raise NotMine(str(no_overload("format", text, values)))
    budget.spend(len(text) // 10 + 1)
    made, at, used = [], 0, 0
    while (mark := text.find("%", at)) >= 0:
        clause = _CLAUSE.match(text, mark)
        if clause is None:
            raise EvaluationError(f"could not parse formatting clause: unrecognized formatting clause {text[mark : mark + 3]!r}")
        made.append(text[at:mark])
        if clause[1]:
            made.append("%")
        elif used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        else:
            made.append(_clause(budget, clause[3], clause[2], values[used]))
            used += 1
        at = clause.end()
    made.append(text[at:])
    return "".join(made)


def _clause(budget: CostBudget, word: str, precision: str | None, value: Any) -> str:
    budget.spend(1)
    if word == "s":
        return _shown(budget, value)
    if word in "fe":
        if not is_number(value):
            raise EvaluationError(f"%{word} clause can only be used on numbers")
        return f"{value:.{int(precision or 6)}{word}}"
    if word == "d":
        if not is_number(value) or isinstance(value, float):
            raise EvaluationError("decimal clause can only be used on integers")
        return str(int(value))
    if word == "b":
        if isinstance(value, bool):
            return "1" if value else "0"
        return f"{_integer(value, word):b}"
    if word in "xX" and isinstance(value, str | bytes):
        budget.spend(len(value) // 10)
        data = value.encode() if isinstance(value, str) else value
        return data.hex() if word == "x" else data.hex().upper()
    return f"{_integer(value, word):{word}}"


def _integer(value: Any, word: str) -> int:
    if isinstance(value, bool | float) or not isinstance(value, int):
        raise EvaluationError(f"%{word} clause can only be used on integers")
    return int(value)


def _shown(budget: CostBudget, value: Any) -> str:
    """A value as text, paid for before it is made: values can be parts of one another many times over."""
    budget.spend(1 + (len(value) // 10 if isinstance(value, str | bytes) else 0))
    if isinstance(value, list):
        return "[" + ", ".join(_shown(budget, each) for each in value) + "]"
    if isinstance(value, dict):
        pairs = sorted((_shown(budget, key), _shown(budget, member)) for key, member in value.items())
        return "{" + ", ".join(f"{key}: {member}" for key, member in pairs) + "}"
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, CelType):
        return value.name
    if isinstance(value, str | bool | int | float | Timestamp | Duration):
        return standard.text_of(value)
    raise EvaluationError("string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations and times")


def _char_method(name: str, run: Any, *types: Any, result: str = "string", least: int | None = None) -> Function:
    return pure(name, (str, *types), run, result, least)


GLOBAL: dict[str, Function] = {
    "matches": Function(_matches, 2, 2, "bool"),
    "jsonpatch.escapeKey": pure("jsonpatch.escapeKey", (str,), lambda text: text.translate(_POINTER), "string"),
    "strings.quote": pure("strings.quote", (str,), _quote, "string"),
}
METHODS: dict[str, Function] = {
    "contains": _char_method("contains", lambda text, part: part in text, str, result="bool"),
    "startsWith": _char_method("startsWith", str.startswith, str, result="bool"),
    "endsWith": _char_method("endsWith", str.endswith, str, result="bool"),
    "matches": Function(_matches, 2, 2, "bool"),
    "charAt": _char_method("charAt", _char_at, int),
    "indexOf": _char_method("indexOf", _index_of, str, int, result="int", least=2),
    "lastIndexOf": _char_method("lastIndexOf", _last_index_of, str, int, result="int", least=2),
    "lowerAscii": _char_method("lowerAscii", lambda text: text.translate(_LOWER)),
    "upperAscii": _char_method("upperAscii", lambda text: text.translate(_UPPER)),
    "trim": _char_method("trim", lambda text: text.strip(_WHITE)),
    "substring": _char_method("substring", _substring, int, int, least=2),
    "replace": Function(_replace, 3, 4, "string"),
    "split": Function(_split, 2, 3, "list"),
    "join": Function(_join, 1, 2, "string"),
    "reverse": Function(_reverse, 1, 1),
    "find": Function(_find, 2, 2, "string"),
    "findAll": Function(_find_all, 2, 3, "list"),
    "format": Function(_format, 2, 2, "string"),
}
