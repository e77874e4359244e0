"""The command line: thin commands over the readers, the audit, the audit file and the reports."""
