"""The decisions of migrations (docs/spec/virtrigaud.md 1.8 and 2.7)."""
