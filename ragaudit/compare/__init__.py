"""Two runs against each other, query by query: what may be compared, what changed, and what a gate says of it."""
