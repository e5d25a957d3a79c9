"""The command line: commands and printers. Works offline; talks to a server only through ``client``."""
