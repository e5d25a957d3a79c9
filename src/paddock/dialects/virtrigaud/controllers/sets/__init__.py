"""The controller of sets (docs/spec/virtrigaud.md 2.8)."""
