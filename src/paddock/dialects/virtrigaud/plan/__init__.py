"""Decisions about VirtRigaud's machines, images, networks, classes and Providers (docs/spec/virtrigaud.md sections 1 and 2). Pure."""
