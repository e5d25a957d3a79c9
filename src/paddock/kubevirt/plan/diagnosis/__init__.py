"""What `paddock why` knows of the kinds of a dialect."""
