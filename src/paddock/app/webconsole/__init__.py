"""The web console as a program: beside any server, or inside the control plane."""
