"""Built-in kinds that only a server has: declared like all kinds, with their strategies beside them."""
