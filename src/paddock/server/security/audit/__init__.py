"""The record of requests: who did what, when, and what came of it (docs/run/audit.md)."""
