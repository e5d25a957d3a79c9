"""The parser's errors in words that say what to do."""

from typing import Any

import yaml

from paddock.kubernetes.meta.manifests.document import Position
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest

# problem -> what is wrong, what to do; the parser's own words serve for the rest
_WORDS = {
    "mapping values are not allowed in this context": (
        'a second ": " in one line, or a wrong indentation',
        "quote the value, or align the line with its neighbours",
    ),
    "did not find expected key": ("the indentation does not fit the lines above", "align the line with its neighbours"),
    "did not find expected '-' indicator": (
        "the indentation does not fit the list above",
        "align the line with the other entries",
    ),
    "could not find expected ':'": ("a line that is neither a key nor a value", 'write it as "key: value"'),
    "found unexpected end of stream": ("a quoted text that does not end", "close the quotes"),
    "did not find expected <document start>": (
        "something follows the end of the document",
        'separate documents with a line "---"',
    ),
    "found incompatible YAML document": ("a %YAML directive of an unknown version", "remove the directive"),
    "did not find expected ',' or ']'": ("a list in brackets that does not go on", "separate entries with commas, end with ]"),
    "did not find expected ',' or '}'": ("an object in braces that does not go on", "separate members with commas, end with }"),
    "did not find expected node content": ("a value is missing", "write a value, or remove the comma"),
    "found invalid Unicode character escape code": ("half of a surrogate pair", "write both halves, or the character itself"),
}
_CHARACTER = "found character that cannot start any token"
_TAB = ("a tab where YAML wants spaces", "indent with spaces")
# The place where the trouble starts tells more than the one where the parser noticed.
_AT_THE_START = ("could not find expected ':'", "found unexpected end of stream")


def unreadable(error: yaml.YAMLError, text: str, source: str, base: Position) -> UnreadableManifest:
    """The error of the parser as ours."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "not readable as YAML or JSON")
    mark: Any = getattr(error, "problem_mark", None)
    if problem in _AT_THE_START or (mark is not None and mark.index >= len(text.rstrip())):
        mark = getattr(error, "context_mark", None) or mark
    if problem == _CHARACTER and mark is not None:
        what, fix = _character(text, mark.index)
    else:
        what, fix = _WORDS.get(problem, (problem, ""))
    if mark is None:
        return UnreadableManifest(source, what, fix=fix)
    column = mark.column + (base.column if mark.line == 0 else 1)
    return UnreadableManifest(source, what, fix=fix, line=mark.line + base.line, column=column)


def _character(text: str, index: int) -> tuple[str, str]:
    """A character that nothing starts with."""
    character = text[index : index + 1]
    if character == "\t":
        return _TAB
    return f"nothing starts with {character!r}", "quote the value"
