"""docs/reference/metrics.md: every metric, from the families that pages declare and from the calls that make metrics."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import paddock
from paddock.app.metrics.collector import RENAMED
from paddock.app.metrics.series import families
from paddock.app.server import processmetrics
from paddock.base.metrics import MetricFamily
from paddock.kubernetes.schema.generate import reference
from paddock.server import requestmetrics
from paddock.server.security.audit import file as audit
from paddock.server.security.flow import metrics as flow
from tools.referencepages.tables import table

PACKAGE = Path(paddock.__file__).parent
_KINDS = ("counter", "gauge", "histogram")
_INTRODUCTION = f"""# Metrics

{reference.HEADER}

Every metric of `/metrics`. [Metrics](../run/metrics.md) describes how to read them, and what their labels mean.
"""
_SERVED: Sequence[tuple[str, str, Sequence[MetricFamily]]] = (
    ("The API server", "", (*requestmetrics.FAMILIES, *(family for family, _ in flow.COUNTS), *audit.FAMILIES)),
    ("The process", "", processmetrics.FAMILIES),
    (
        "Machines and the host",
        "`paddock up` serves them. Names and labels are those of KubeVirt and of the kubelet, except for `paddock_*`.",
        families.ALL,
    ),
)


class DeclaredMetric(NamedTuple):
    """A metric as the call that makes it declares it."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...]


class NoDeclaration(Exception):
    """A call makes a metric whose name, text or labels are known at run time only."""


def page() -> str:
    """Return the page."""
    return "\n".join([_INTRODUCTION, *_served(), *_made(), *_renamed()])


def names() -> frozenset[str]:
    """Return the names of all metrics of the page."""
    served = (family.name for _, _, group in _SERVED for family in group)
    return frozenset((*served, *declared(), *RENAMED))


def _served() -> Iterator[str]:
    for title, text, group in _SERVED:
        yield f"## {title}\n"
        if text:
            yield f"{text}\n"
        rows = [(f"`{each.name}`", each.kind, each.text) for each in sorted(group, key=lambda each: each.name)]
        yield from table(("metric", "type", "meaning"), rows)


def _made() -> Iterator[str]:
    yield "## Controllers and the event loop\n"
    yield "`paddock up` and `paddock operator` serve those of the controllers that they run.\n"
    rows = [
        (f"`{each.name}`", each.kind, " ".join(f"`{label}`" for label in each.labels), each.text) for _, each in sorted(declared().items())
    ]
    yield from table(("metric", "type", "labels", "meaning"), rows)


def _renamed() -> Iterator[str]:
    yield "## Other names\n"
    yield "`paddock up` also serves these metrics of the controllers under the names that dashboards of Kubernetes and KubeVirt expect.\n"
    rows = [
        (f"`{name}`", f"`{known}`", f"`{label[1]}` in place of `{label[0]}`" if label is not None else "")
        for name, (known, label) in sorted(RENAMED.items())
    ]
    yield from table(("metric", "same as", "label"), rows)


@cache
def declared() -> Mapping[str, DeclaredMetric]:
    """Return the metrics that calls of a MetricsRegistry make, by name."""
    found: dict[str, DeclaredMetric] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if "metrics." in text and path != PACKAGE / "base" / "metrics.py":
            for each in _of_module(path, ast.parse(text)):
                found[each.name] = each
    return found


def _of_module(path: Path, tree: ast.Module) -> Iterator[DeclaredMetric]:
    module = ".".join(("paddock", *path.relative_to(PACKAGE).with_suffix("").parts))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        calls = [node for node in ast.walk(function) if _makes(node)]
        if calls:
            known = _Values(module, function)
            for call in calls:
                assert isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
                yield _declaration(call, call.func.attr, known, f"{path}:{call.lineno}")


def _makes(node: ast.AST) -> bool:
    """Return whether this is a call of a registry: `metrics.counter(...)`, `self.metrics.gauge(...)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in _KINDS and ast.unparse(node.func.value).rpartition(".")[2] == "metrics"


def _declaration(call: ast.Call, kind: str, known: "_Values", place: str) -> DeclaredMetric:
    try:
        given = list(known.several(call.args))
        labels = next((known.value(each.value) for each in call.keywords if each.arg == "labels"), given[2] if len(given) > 2 else ())
    except KeyError as error:
        raise NoDeclaration(f"{place}: {error.args[0]} is no constant; write what the metric is called, means and counts by") from error
    return DeclaredMetric(given[0], kind, given[1], tuple(labels))


class _Values:
    """The constants that a call in a function may name: the module's, and those that the function itself sets."""

    def __init__(self, module: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._module = import_module(module)
        self._local: dict[str, Any] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    self._local[node.targets[0].id] = self.value(node.value)
                except KeyError:
                    continue

    def several(self, nodes: Sequence[ast.expr]) -> Iterator[Any]:
        """Yield the values of arguments or of the members of a tuple."""
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.value(node.value)
            else:
                yield self.value(node)

    def value(self, node: ast.expr) -> Any:
        """Return the value of an expression; raise `KeyError` for one that is no constant."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Tuple):
            return tuple(self.several(node.elts))
        if isinstance(node, ast.JoinedStr):
            return "".join(str(self.value(each.value if isinstance(each, ast.FormattedValue) else each)) for each in node.values)
        if isinstance(node, ast.Name) and (node.id in self._local or hasattr(self._module, node.id)):
            return self._local.get(node.id, getattr(self._module, node.id, None))
        raise KeyError(ast.unparse(node))
