"""The controller of Providers, their programs and connections (docs/spec/virtrigaud.md 2.4)."""
