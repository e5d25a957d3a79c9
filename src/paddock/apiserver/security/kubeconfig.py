"""Kubeconfigs for the users that the server itself makes."""

import base64

import yaml


def document(server: str, authority: bytes, certificate: bytes, key: bytes, *, user: str = "admin", cluster: str = "paddock") -> str:
    """A kubeconfig with a client certificate."""

    def encoded(content: bytes) -> str:
        return base64.b64encode(content).decode()

    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server, "certificate-authority-data": encoded(authority)}}],
        "users": [{"name": user, "user": {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": user, "namespace": "default"}}],
        "current-context": cluster,
    }
    return yaml.safe_dump(said, sort_keys=False)
