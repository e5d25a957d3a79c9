"""The verbs of the API: options and forms of requests around the reading and writing of objects. One module for each family."""
