"""The written forms of an audit: JSON, Markdown, and text for a terminal. Each reads records and returns text."""
