"""Documents to YAML or JSON, the same text for the same data.

Keys keep their order. A text that some YAML reader would take for something else (`on`, `1e3`, `2024-01-01`, `12:30`) is quoted,
a text of several lines stands as a block.
"""

import json
from collections.abc import Iterable
from typing import Any

import yaml

from paddock.kubernetes.meta.manifests.resolve import plain
from paddock.kubernetes.schema.scalars import BareWord

_TEXT = "tag:yaml.org,2002:str"
_ENDLESS = 2**30


class _Dumper(yaml.CSafeDumper):
    """PyYAML's C emitter with our choice of quotes, and without anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = None
    if "\n" in text:
        style = "|"
    elif isinstance(plain(text), BareWord) or not isinstance(plain(text), str):
        style = '"'
    return dumper.represent_scalar(_TEXT, text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(documents: Iterable[Any]) -> str:
    """Documents as one YAML stream."""
    text: str = yaml.dump_all(
        documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, default_flow_style=False, width=_ENDLESS, allow_unicode=True
    )
    # Only what stands between documents is needed.
    return text.removeprefix("---\n")


def to_json(value: Any) -> str:
    """A value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
