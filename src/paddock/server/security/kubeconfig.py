"""Kubeconfigs for the users that the server itself makes."""

import base64
import json

_DOCUMENT = """\
apiVersion: v1
kind: Config
clusters:
- name: {cluster}
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {cluster}
  context:
    cluster: {cluster}
    user: {user}
    namespace: default
current-context: {cluster}
"""


def document(server: str, authority: bytes, certificate: bytes, key: bytes, *, user: str = "admin", cluster: str = "paddock") -> str:
    """A kubeconfig with a client certificate."""

    # Texts of JSON are texts of YAML; written by hand, so that a start does not have to load a writer of YAML.
    return _DOCUMENT.format(
        server=json.dumps(server),
        authority=base64.b64encode(authority).decode(),
        certificate=base64.b64encode(certificate).decode(),
        key=base64.b64encode(key).decode(),
        user=json.dumps(user),
        cluster=json.dumps(cluster),
    )
