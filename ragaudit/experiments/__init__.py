"""The next single change: levers as data, replay on recorded lists, ranking of proposals."""
