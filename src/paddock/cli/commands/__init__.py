"""One module per command; each has `run(arguments, console)` and answers with the exit code."""
