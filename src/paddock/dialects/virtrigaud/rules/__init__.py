"""The rules across fields of VirtRigaud's kinds (docs/spec/virtrigaud.md sections 0, 1 and 2), one module per kind.

An error is what a ruling of the specification refuses, and what contradicts itself. What is only incomplete, and what the
original project accepts and then ignores, is a warning: such objects exist, and they must stay storable.
"""
