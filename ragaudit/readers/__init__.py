"""Other people's files -> model records. What cannot be read is set aside with its reason; what is good is kept."""
