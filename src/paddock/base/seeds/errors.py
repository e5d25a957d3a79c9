from paddock.base.errors import Terminal


class SeedError(Terminal):
    """A seed disk cannot be made of what was given."""
