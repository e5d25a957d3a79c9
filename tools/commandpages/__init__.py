"""The pages that are made of the parsers: man pages, and the reference of every command and option."""
