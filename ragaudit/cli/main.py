"""The entry point: the list of commands, each imported only when it runs, and how errors become exit codes."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword

import click

from ragaudit import __version__
from ragaudit.cli.streams import ExitCode, Streams, let_go_of
from ragaudit.errors import RagauditError

COMMANDS: dict[str, str] = {
    "demo": "Audit the bundled example and show one worked diagnosis.",
    "init": "Write a commented ragaudit.toml.",
    "check": "Preflight: what the data cannot tell, and how to log it.",
    "audit": "Say for every query which stage lost the evidence, with proof.",
    "show": "One query: journey, evidence, diagnosis, what to change.",
    "review": "Step through failing queries in the terminal app, and say what you think of them.",
    "import": "Read the traces of another tool, and say how each field was come by.",
    "inventory": "Write what stands in a live index as sources.jsonl, chunks.jsonl and index.json.",
    "formats": "The formats that import reads.",
    "next": "The next experiments: one variable each, ranked, with what they would do.",
    "report": "The written report of an audit: Markdown, HTML, JSON, and JUnit or GitHub for CI.",
    "judge": "Plan, run and check the LLM judge: price first, then verdicts, then how far to trust them.",
    "tape": "Recorded judge replies: count, verify, prune, export the cache and cassettes.",
    "compare": "Compare two runs of the same queries: did the one thing that changed help?",
    "gate": "Hold a run against the thresholds under [gates].",
    "baseline": "Freeze a run as a file to compare with; list and show such files.",
    "experiment": "The journal: plan a change of one variable, start it, finish it with what came out.",
    "mcp": "Serve check, audit, show, next, compare and report to a coding agent.",
    "drill": "Break healthy queries on purpose and check that the diagnosis names what was broken.",
    "redact": "Take personal data and secrets out of traces and reports, with pseudonyms that keep every join.",
    "stages": "The nine stages, and what each may lose.",
    "causes": "Every cause ragaudit can name, and what to change.",
    "levers": "What an experiment may change, in the order in which it is tried.",
    "metrics": "Every metric: question, formula, when it is undefined.",
}
"""Name and one line of help, so that `--help` imports no command. A test compares them with the commands."""

EPILOG = """\b
Exit codes: 0 done; 1 a gate or an alarm fired; 2 usage or configuration;
3 input unreadable, inconsistent or blocked by preflight; 4 the judge failed;
70 a bug in ragaudit; 130 interrupted. Findings alone never fail a command.
stdout is data, stderr is narration. Nothing is sent anywhere, but to a judge
model that you set."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to a full or broken disk ends with."""


class LazyGroup(click.Group):
    """A group whose commands are modules: `ragaudit.cli.commands.<name>`, each with a `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module; None for a name that is not in the list."""
        if cmd_name not in COMMANDS:
            return None
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command: click.Command = import_module(f"ragaudit.cli.commands.{module}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="ragaudit %(version)s")
@click.option("-q", "--quiet", is_flag=True, help="No narration and no progress on stderr.")
@click.pass_context
def group(ctx: click.Context, quiet: bool) -> None:
    """Say which stage of a RAG system lost the evidence.

    Start with `ragaudit demo`; then point `ragaudit audit` at the folder that holds your traces.jsonl.
    """
    ctx.obj = Streams(quiet=quiet)


def execute(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Every error ends here."""
    streams = Streams()
    try:
        with group.make_context("ragaudit", list(arguments)) as ctx:
            group.invoke(ctx)
        sys.stdout.flush()
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
        return ExitCode.USAGE
    except RagauditError as error:
        streams.complain(str(error))
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        streams.complain("interrupted.")
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        let_go_of(sys.stdout)  # the reader has seen enough (`| head`)
    except Exception as error:  # noqa: BLE001 - the one place: whatever comes here is ours
        if isinstance(error, OSError) and error.errno in NO_ROOM and error.filename is None:
            # Every file is written where its errors are told with its name: what has none is a standard stream.
            let_go_of(sys.stdout)
            streams.complain(f"stdout: cannot be written ({error.strerror}). Free some space, or write elsewhere.")
            return ExitCode.USAGE
        streams.complain(_bug(error))
        return ExitCode.BUG
    return ExitCode.DONE


def run() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")  # a terminal that cannot show a character must not end an audit
    sys.exit(execute(sys.argv[1:]))


def _bug(error: Exception) -> str:
    said = "".join(traceback.format_exception_only(error)).strip()
    if os.environ.get("RAGAUDIT_TRACEBACK"):
        return f"this is a bug in ragaudit.\n{''.join(traceback.format_exception(error))}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"this is a bug in ragaudit: {said} ({os.path.basename(frame.filename)}:{frame.lineno}).\n"
        "Please report it with the output of the same command under RAGAUDIT_TRACEBACK=1."
    )


if __name__ == "__main__":
    run()
