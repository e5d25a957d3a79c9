from collections.abc import Sequence
from typing import Any

from paddock.base.lines import one_line
from paddock.cli.console import Console
from paddock.fleet.documents.objects import title
from paddock.kubernetes.meta.manifests import write


def print_objects(console: Console, objects: Sequence[dict[str, Any]], output: str) -> None:
    """As YAML documents, as one JSON list that `kubectl` takes, or by name only."""
    if output == "yaml":
        console.out(write.to_yaml(objects) if objects else "")
    elif output == "json":
        console.out(write.to_json({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    else:
        console.out("".join(f"{_name(data)}\n" for data in objects))


def _name(data: dict[str, Any]) -> str:
    namespace = (data.get("metadata") or {}).get("namespace")
    return one_line(f"{data.get('apiVersion')} {title(data)}" + (f" in {namespace}" if namespace else ""))
