"""The kinds of this dialect: one module each."""
