"""Clones of machines (docs/spec/virtrigaud.md 2.6)."""
