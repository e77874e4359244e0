"""Run a command while the local judge model is served: start the server, wait for it, run, stop it again.

python examples/local_model/with_server.py -- ragaudit audit examples/judged --tape new
"""

from __future__ import annotations

import argparse
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SERVER_PYTHON = HERE.parents[1] / ".models" / "venv" / "bin" / "python"
"""The environment that xllamacpp is installed in."""
PATIENCE = 300.0


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code of the command; 1 when the server did not come up."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", type=Path, default=SERVER_PYTHON, help="interpreter that has xllamacpp")
    parser.add_argument("--model", help="handed on to serve.py")
    parser.add_argument("--port", type=int, default=8091)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        parser.error("no command. Write it behind --")
    address = ("127.0.0.1", options.port)
    if _is_taken(address):
        sys.stderr.write(f"Port {options.port} is taken. Stop what listens there, or pass --port.\n")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped then, too
    serve = [str(options.python), str(HERE / "serve.py"), "--port", str(options.port)]
    serve += ["--model", options.model] if options.model else []
    with subprocess.Popen(serve, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            if not _is_up(f"http://127.0.0.1:{options.port}/v1/models", server):
                sys.stderr.write(f"The model is not served. See: {' '.join(serve)}\n")
                return 1
            return subprocess.run(command, check=False).returncode
        finally:
            server.terminate()


def _is_taken(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(address) == 0


def _is_up(url: str, server: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return server.poll() is None
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
    return False


if __name__ == "__main__":
    sys.exit(main())
