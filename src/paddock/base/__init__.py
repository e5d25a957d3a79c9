"""The lowest row: values and rules that know nothing of Kubernetes' API or of virtual machines. Imports the standard library only."""
