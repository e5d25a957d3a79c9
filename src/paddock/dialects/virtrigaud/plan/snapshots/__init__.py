"""Decisions about VirtRigaud's VMSnapshots (docs/spec/virtrigaud.md 1.6 and 2.5)."""
