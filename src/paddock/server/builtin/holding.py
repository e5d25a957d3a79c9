"""Finalizers that the server puts on a new object, because whoever takes them off would put them on in a write of its own right after."""

from paddock.base.jsondata import Data


def hold(new: Data, finalizer: str) -> None:
    """Have an object wait for one who clears up after it, in place."""
    metadata = new["metadata"]
    finalizers = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]
