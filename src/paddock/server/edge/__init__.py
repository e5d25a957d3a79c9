"""HTTP: bytes to requests and answers to bytes. Knows no Kubernetes."""
