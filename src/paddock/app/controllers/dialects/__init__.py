"""The wiring of each dialect: it makes the settings of its controllers from the common ones, and adds them to a program."""
