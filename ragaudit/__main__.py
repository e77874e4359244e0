"""`python -m ragaudit`: the same as the console script."""

from ragaudit.cli.main import run

if __name__ == "__main__":
    run()
