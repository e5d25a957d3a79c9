"""Shared parts of every client's script: its namespace, and its conversation with the test that runs it."""

import os

NAMESPACE = os.environ["NAMESPACE"]
GROUP, VERSION = "reference.paddock.example", "v1"
API_VERSION = f"{GROUP}/{VERSION}"


def crate(name: str, **spec: object) -> dict[str, object]:
    return {
        "apiVersion": API_VERSION,
        "kind": "Crate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"color": "red", **spec},
    }


def config(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}, "data": data}


def say(text: str) -> None:
    """A line that the test waits for."""
    print(text, flush=True)
