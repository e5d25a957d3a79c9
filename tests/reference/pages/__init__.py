"""Pages of the documentation, followed word for word with the programs that they are about."""
