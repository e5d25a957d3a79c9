"""The support of each field of a running machine, as a table: tests carry it out, and the reference page is printed from it."""
