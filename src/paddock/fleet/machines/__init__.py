"""Machines of every dialect, as the commands for people see them: one machine, whatever stands in front of it."""
