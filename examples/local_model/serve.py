"""Serve the local judge model on loopback, as an OpenAI-compatible endpoint: http://127.0.0.1:8091/v1.

Needs xllamacpp (requirements.txt), which is no part of ragaudit: install it into an environment of its own.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MODEL = Path(__file__).resolve().parents[2] / ".models" / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
"""Where assemble.py puts it."""
ALIAS = "qwen2.5-coder-1.5b"
PORT = 8091
CONTEXT = 8192


def main(arguments: Sequence[str] | None = None) -> int:
    """Load the model, print its address, and answer until a signal arrives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    if not options.model.exists():
        sys.stderr.write(f"{options.model}: there is no model. Run: python {Path(__file__).with_name('assemble.py')}\n")
        return 1
    try:
        import xllamacpp  # type: ignore[import-not-found]
    except ImportError:
        requirements = Path(__file__).with_name("requirements.txt")
        sys.stderr.write(f"xllamacpp is not installed. Run: python -m pip install -r {requirements}\n")
        return 1
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", options.port)) == 0:
            sys.stderr.write(f"Port {options.port} is taken. Stop what listens there, or pass --port.\n")
            return 1
    server = xllamacpp.Server(_parameters(xllamacpp.CommonParams(), options))
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    sys.stdout.write(f"{ALIAS} answers at {server.listening_address}/v1\n")
    sys.stdout.flush()
    while not stop.wait(0.5):  # not for ever: a signal may arrive in a thread of the server, which wakes nobody here
        pass
    return 0


def _parameters(parameters: Any, options: argparse.Namespace) -> Any:
    """One request at a time, no GPU, no web page, loopback only: the same reply to the same request."""
    parameters.model.path = str(options.model)
    parameters.model_alias = {ALIAS}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options.port
    parameters.n_ctx = CONTEXT
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = options.threads
    parameters.cpuparams_batch.n_threads = options.threads
    parameters.n_gpu_layers = 0
    parameters.use_jinja = True
    parameters.ui = False
    return parameters


if __name__ == "__main__":
    sys.exit(main())
