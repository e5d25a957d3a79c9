"""The members of cloud-config by cloud-init's published schema: misspelt ones, values of a wrong kind, users that nobody can log in as.

`cloudinit.json` has names and kinds of values (tools/cloudinitfacts.py writes it). A name that cloud-init may have learnt since is no
fault; one that looks like a known one is.
"""

import functools
import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import chain, islice
from typing import Any

import yaml

from paddock.base.nearest import nearest

# Keys at the top that cloud-init 24 reads and the published schema does not name.
_MORE = frozenset(
    {
        *("allow_userdata", "apt_preserve_sources_list", "create_hostname_file", "datasource", "datasource_list", "debug", "def_log_file"),
        *("groups", "launch-index", "log_cfgs", "logcfg", "merge_how", "merge_type", "network", "output", "syslog_fix_perms"),
        *("system_info", "ubuntu_pro", "user", "version"),
    }
)
_WAYS_IN = ("ssh_authorized_keys", "ssh-authorized-keys", "ssh_import_id", "passwd", "hashed_passwd", "plain_text_passwd")
_FOR_ALL = ("ssh_authorized_keys", "ssh_import_id", "chpasswd", "password")
_NO_SHELLS = ("nologin", "false")
_NULL = "tag:yaml.org,2002:null"
_KINDS = {"list": "a list", "mapping": "a mapping", "scalar": "a single value"}
# Whoever mends these reads the next ones then.
_MOST = 20
_ENTRY = "an entry of "
Facts = Mapping[str, Any]


@functools.cache
def _facts() -> Facts:
    found: Facts = json.loads(files("paddock.kubernetes.meta").joinpath("cloudinit.json").read_text(encoding="utf-8"))
    return found


def slips(root: yaml.Node | None) -> Iterator[str]:
    """Return the first slips in a document, each with its line, none with a value."""
    if isinstance(root, yaml.MappingNode):
        found = chain(_Walk().members(root, _facts()["keys"], "", _MORE), _locked_out(root))
        yield from islice(found, _MOST)


class _Walk:
    """One way through a document, which comes to each value once: an alias can lead back, or stand for very much."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def members(self, node: yaml.MappingNode, known: Facts, place: str, more: frozenset[str] = frozenset()) -> Iterator[str]:
        """Slips in the members of a mapping."""
        for key, value in node.value:
            word = key.value if isinstance(key, yaml.ScalarNode) else ""
            if word in known:
                yield from self._value(value, known[word], word)
            elif word not in more and (meant := nearest(word, (*known, *more))):
                yield f'line {key.start_mark.line + 1}: cloud-init knows no "{word}"{place}; did you mean "{meant}"?'

    def _value(self, node: yaml.Node, known: Facts, name: str) -> Iterator[str]:
        kinds, found = known.get("kinds", ()), _kind(node)
        if node.tag == _NULL or id(node) in self._seen:
            return
        self._seen.add(id(node))
        if kinds and found not in kinds:
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            yield f"line {node.start_mark.line + 1}: {name} must be {wanted}, not {_KINDS[found]}"
        elif isinstance(node, yaml.SequenceNode) and "items" in known:
            for each in node.value:
                yield from self._value(each, known["items"], f"{_ENTRY}{name.removeprefix(_ENTRY)}")
        elif isinstance(node, yaml.MappingNode) and "keys" in known and not known.get("open"):
            yield from self.members(node, known["keys"], f" in {name.removeprefix(_ENTRY)}")


def _kind(node: yaml.Node) -> str:
    if isinstance(node, yaml.MappingNode):
        return "mapping"
    return "list" if isinstance(node, yaml.SequenceNode) else "scalar"


def _locked_out(root: yaml.MappingNode) -> Iterator[str]:
    """Users that have neither a key nor a password. Keys and passwords at the top are the default user's, or name theirs."""
    top = _texts(root)
    users = next((value for key, value in root.value if getattr(key, "value", "") == "users"), None)
    if not isinstance(users, yaml.SequenceNode) or any(name in top for name in _FOR_ALL):
        return
    for each in users.value:
        given = _texts(each) if isinstance(each, yaml.MappingNode) else {}
        shell, name = given.get("shell", ""), given.get("name", "")
        if not name or given.get("system") == "true" or shell.rpartition("/")[2] in _NO_SHELLS:
            continue
        if not any(way in given for way in _WAYS_IN):
            yield f'line {each.start_mark.line + 1}: nobody can log in as "{name}": it has no SSH key and no password'


def _texts(node: yaml.MappingNode) -> dict[str, str]:
    """The members of a mapping, with the text of those that have one."""
    return {
        key.value: value.value if isinstance(value, yaml.ScalarNode) else ""
        for key, value in node.value
        if isinstance(key, yaml.ScalarNode)
    }
