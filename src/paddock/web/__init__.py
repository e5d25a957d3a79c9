"""The server of the web console (docs/design/0022-web-console.md). It sends a page finished rows, and carries out its wishes."""
