"""The gate: which tests a run leaves out, and whether a committed record proves them for the same code (docs/contribute/gate.md)."""
