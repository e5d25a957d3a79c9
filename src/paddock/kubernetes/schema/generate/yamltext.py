"""Generated YAML: block style, long lines folded, no anchors, the same bytes for the same data."""

from typing import Any

import yaml


class _Dumper(yaml.CSafeDumper):
    """Writes every value out in full, and quotes what some readers take for a boolean."""

    def ignore_aliases(self, data: Any) -> bool:
        """Repeats stay repeats: `kubectl` users read these files."""
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    # PyYAML writes these bare, and readers of YAML 1.1 in Go see booleans.
    style = '"' if value in ("y", "Y", "n", "N") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(data: Any) -> str:
    """The data as YAML, in the order of its members."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
