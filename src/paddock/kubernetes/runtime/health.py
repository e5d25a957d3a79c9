"""Readiness of a program, and the pages that report it. A program that answers at all is alive. Its HTTP server serves the pages."""

from collections.abc import Callable

from paddock.base.metrics import CONTENT_TYPE, MetricsRegistry

# Why not; empty when everything is well.
Check = Callable[[], str]


class HealthChecks:
    """Named checks that say whether the program does its work."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        self._ready: dict[str, Check] = {}

    def add_ready(self, name: str, check: Check) -> None:
        """The program does not do its work while this says why."""
        self._ready[name] = check

    @property
    def unready(self) -> str:
        """The reason why the program is not ready."""
        return "; ".join(f"{name}: {why}" for name, why in self._said(self._ready) if why)

    def answer(self, path: str) -> tuple[int, str, str] | None:
        """Status, media type and body of a page; None when there is no such page."""
        if path == "/metrics":
            return 200, CONTENT_TYPE, self._metrics.text()
        checks = {"/healthz": {}, "/livez": {}, "/readyz": self._ready}.get(path)
        if checks is None:
            return None
        said = self._said(checks)
        lines = [f"[{'-' if why else '+'}]{name} {why or 'ok'}" for name, why in said]
        good = not any(why for _, why in said)
        return (200 if good else 500), "text/plain; charset=utf-8", "\n".join([*lines, "ok" if good else "failed", ""])

    def _said(self, checks: dict[str, Check]) -> list[tuple[str, str]]:
        return [(name, check()) for name, check in sorted(checks.items())]
