"""The commands that run or manage a server: one module each, with `run(arguments, console)`."""
