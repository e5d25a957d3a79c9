"""The checks of a host: `paddock doctor`, what `paddock up` says at its start, and conditions of the Node."""
