"""One module a command, imported when that command is run. The list of them stands in `ragaudit.cli.main`."""
