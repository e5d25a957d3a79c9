"""Words that YAML readers disagree on."""


class BareWord(str):
    """An unquoted `On`, `off`, `Yes`, `n` ...: a string to YAML 1.2, a boolean to YAML 1.1, which is what kubectl reads.

    The manifest loader keeps such a word as it was written; the check of the schema knows which of the two a field wants.
    """

    __slots__ = ()

    def as_bool(self) -> bool:
        """Return the value for a YAML 1.1 reader."""
        return self.lower() in ("on", "yes", "y", "true")
