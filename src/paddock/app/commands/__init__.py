"""The commands that run a server or look after one: one module each, with `run(arguments, console)`."""
