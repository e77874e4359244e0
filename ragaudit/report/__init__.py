"""The written forms of an audit: JSON, Markdown, HTML, and text for a terminal. Each reads records and returns text."""
