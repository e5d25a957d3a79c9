"""What the simulator answers instead of data, in the shapes of the real API."""

from collections.abc import Mapping


class ApiError(Exception):
    """A refusal: the status, the reason of the status line, and the parameters at fault."""

    def __init__(self, status: int, reason: str, errors: Mapping[str, str] | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.errors = status, reason, dict(errors or {})


class TaskFailure(Exception):
    """The end of a worker that did not succeed; its text becomes the task's exit status."""


def invalid(**errors: str) -> ApiError:
    """Return the refusal of parameters; underscores in names stand for hyphens."""
    return parameters({name.replace("_", "-"): reason for name, reason in errors.items()})


def parameters(errors: Mapping[str, str]) -> ApiError:
    """Return the refusal of parameters by their exact names."""
    return ApiError(400, "Parameter verification failed.", errors)


def forbidden(detail: str = "") -> ApiError:
    """Return the refusal of somebody who lacks a privilege."""
    return ApiError(403, f"Permission check failed ({detail})" if detail else "Permission check failed")


def failed(reason: str) -> ApiError:
    """Return a failure of the call's own code, which the real API answers with status 500."""
    return ApiError(500, reason)
