"""The HTTP API: routes as rows of a table, and the process that listens."""
