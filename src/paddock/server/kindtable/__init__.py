"""Kubernetes' built-in kinds as data: one table of kinds, messages and fields (docs/design/0013-table-of-kinds.md)."""
