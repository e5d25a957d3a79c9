"""What is made of the parsers: man pages, the reference of every command and option, and the facts of completion."""
