"""Decisions about VMClones (docs/spec/virtrigaud.md 1.7 and 2.6)."""
