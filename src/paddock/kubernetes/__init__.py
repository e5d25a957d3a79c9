"""What a program for Kubernetes needs, and no machine: kinds and their schemas, the client, and the machinery of controllers."""
