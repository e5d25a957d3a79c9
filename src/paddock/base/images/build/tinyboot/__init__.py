"""The boot loader of the tiny guest: its source, and what `as` makes of it."""
