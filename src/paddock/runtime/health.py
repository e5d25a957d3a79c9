"""Liveness and readiness of a program, and the pages that report them. The program's HTTP server serves the pages."""

from collections.abc import Callable

from paddock.base.metrics import CONTENT_TYPE, MetricsRegistry

# Why not; empty when everything is well.
Check = Callable[[], str]


class HealthChecks:
    """Named checks of two sorts: alive (else restart it) and ready (else do not count on it yet)."""

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._metrics = metrics
        self._alive: dict[str, Check] = {}
        self._ready: dict[str, Check] = {}

    def add_alive(self, name: str, check: Check) -> None:
        """The program is broken when this says why."""
        self._alive[name] = check

    def add_ready(self, name: str, check: Check) -> None:
        """The program does not do its work while this says why."""
        self._ready[name] = check

    @property
    def unready(self) -> str:
        """The reason why the program is not ready."""
        return "; ".join(f"{name}: {why}" for name, why in self._said({**self._alive, **self._ready}) if why)

    def answer(self, path: str) -> tuple[int, str, str] | None:
        """Status, media type and body of a page; None when there is no such page."""
        if path == "/metrics":
            return 200, CONTENT_TYPE, self._metrics.text()
        checks = {"/healthz": self._alive, "/livez": self._alive, "/readyz": {**self._alive, **self._ready}}.get(path)
        if checks is None:
            return None
        said = self._said(checks)
        lines = [f"[{'-' if why else '+'}]{name} {why or 'ok'}" for name, why in said]
        good = not any(why for _, why in said)
        return (200 if good else 500), "text/plain; charset=utf-8", "\n".join([*lines, "ok" if good else "failed", ""])

    def _said(self, checks: dict[str, Check]) -> list[tuple[str, str]]:
        return [(name, check()) for name, check in sorted(checks.items())]
