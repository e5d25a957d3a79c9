"""The host library that boots guests: machines, images, volumes, networks, seeds. Knows no Kubernetes."""
