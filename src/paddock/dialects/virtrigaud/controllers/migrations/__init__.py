"""The controller of migrations (docs/spec/virtrigaud.md 2.7)."""
