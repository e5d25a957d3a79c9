"""The Kubernetes-compatible API server. The road of a request is drawn in docs/design/0005-api-server.md."""
