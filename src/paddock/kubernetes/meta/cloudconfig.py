"""User data and network data as cloud-init reads them: headers, and whether a document is what it says."""

import functools
from collections.abc import Iterator

import yaml

# The first line decides how cloud-init treats a document.
_HEADERS = (
    "#cloud-config",
    "#!",
    "#include",
    "#part-handler",
    "#cloud-boothook",
    "## template: jinja",
    "Content-Type:",
    "MIME-Version:",
)
NO_HEADER = "no header that cloud-init knows, such as #cloud-config or #!; the guest may ignore it"
# Composing is recursive and in C: what is nested without end would end the process. Nobody writes a tenth of this.
_DEEPEST = 200
# Every value costs time and memory before any check of the document.
_MOST_EVENTS = 100_000
# Each collection begins with one of these at least, so a short text with few of them is not nested deep.
_OPENINGS = "[{-?:"
_SHORT = 1 << 14
_NETWORK_VERSIONS = ("1", "2")


def has_known_header(text: str) -> bool:
    """Return whether cloud-init knows the type of the document."""
    return text.startswith(_HEADERS)


def problem(text: str) -> str:
    """Return the mistake in a `#cloud-config` document, with its line; empty when there is none, or when the text is no such document."""
    if not text.startswith("#cloud-config"):
        return ""
    return mapping_problem(text)


def user_data_problems(text: str) -> tuple[str, ...]:
    """Return the faults of user data, and the parts of it without effect: each with its line, none with a value."""
    return _problems_lately(text) if len(text) <= _SHORT else tuple(_problems(text))


def _problems(text: str) -> Iterator[str]:
    broken = problem(text)
    if broken:
        yield f"not valid cloud-config: {broken}"
    elif not has_known_header(text):
        yield NO_HEADER
    elif text.startswith("#cloud-config"):
        yield from slips(text)


# A machine is checked at each change of it, and by each kind that it goes through; machines of one origin share their user data.
_problems_lately = functools.lru_cache(maxsize=16)(lambda text: tuple(_problems(text)))


def slips(text: str) -> Iterator[str]:
    """Members of a readable document that look like others that cloud-init reads, values of a wrong kind, users without a way in."""
    # Most commands meet no user data.
    from paddock.kubernetes.meta import cloudkeys  # noqa: PLC0415

    yield from cloudkeys.slips(_compose(text))


def network_problem(text: str) -> str:
    """Return the mistake in network data: it must be a mapping with `version` 1 or 2, bare or under `network`. Empty when there is none."""
    unreadable = mapping_problem(text)
    if unreadable:
        return unreadable
    root = _compose(text)
    inner = _member(root, "network")
    version = _member(root if inner is None else inner, "version")
    known = isinstance(version, yaml.ScalarNode) and version.value in _NETWORK_VERSIONS
    return "" if known else "no version: 1 or version: 2, neither at the top nor under network"


def mapping_problem(text: str) -> str:
    """Return the reason why a text is no YAML mapping, with its line; empty when it is one."""
    try:
        root = _compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark else ""
        return f"{line}{getattr(error, 'problem', None) or 'not readable as YAML'}"
    except UnicodeError:
        return "not readable as text"
    if root is None or isinstance(root, yaml.MappingNode):
        return ""
    return f"line {root.start_mark.line + 1}: must be a mapping, not a {'list' if isinstance(root, yaml.SequenceNode) else 'single value'}"


def _compose(text: str) -> yaml.Node | None:
    """Return the root of a document, which nobody changes. Raises `yaml.YAMLError` and `UnicodeError`."""
    return _composed_lately(text) if len(text) <= _SHORT else _composed(text)


def _composed(text: str) -> yaml.Node | None:
    if len(text) > _SHORT or sum(map(text.count, _OPENINGS)) > _DEEPEST:
        _bound(text)
    root: yaml.Node | None = yaml.compose(text, Loader=yaml.CSafeLoader)
    return root


# One check asks several times about the same text.
_composed_lately = functools.lru_cache(maxsize=2)(_composed)


def _bound(text: str) -> None:
    """Raise `yaml.YAMLError` for a document that is nested too deep or has too many values to be composed."""
    depth = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        if count > _MOST_EVENTS:
            raise yaml.MarkedYAMLError(problem=f"more than {_MOST_EVENTS} values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise yaml.MarkedYAMLError(problem=f"nested deeper than {_DEEPEST} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _member(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    return next((value for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.value == name), None)
