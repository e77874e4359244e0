"""The terminal app: an audit file, stepped through query by query. Only `ragaudit review` imports it."""
