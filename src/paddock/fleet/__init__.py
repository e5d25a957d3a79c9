"""The machines of every dialect as people ask for them: find, create, change, explain, move. It returns values and prints nothing."""
