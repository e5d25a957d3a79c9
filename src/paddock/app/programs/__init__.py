"""The programs of Providers on the embedded server: each is a child process with a user, a sandbox and limits of its own."""
