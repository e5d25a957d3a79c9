"""Cases for a server that carries out VirtRigaud's objects: upstream's format of conformance specs (docs/spec/virtrigaud.md 5.3). Pure."""
