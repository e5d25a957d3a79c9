"""Manifests: bytes to documents that know where each of their fields stands, and documents to YAML or JSON. Pure."""
