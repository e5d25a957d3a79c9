"""The controller of images (docs/spec/virtrigaud.md 2.3)."""
