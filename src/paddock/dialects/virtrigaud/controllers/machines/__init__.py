"""The controller of machines (docs/spec/virtrigaud.md 2.1)."""
