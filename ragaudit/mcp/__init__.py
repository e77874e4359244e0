"""What coding agents call: a server on stdin and stdout with read-only tools over folders that the user named."""
