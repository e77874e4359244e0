"""A model on 127.0.0.1 that does as a test tells it: an OpenAI-compatible server with replies and faults by script."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True)
class Say:
    """A reply of the model."""

    text: str = "ok"
    finish_reason: str = "stop"
    refusal: str | None = None
    usage: tuple[int, int] | None = (10, 2)
    logprobs: tuple[tuple[str, float], ...] | None = None
    delay: float = 0.0


@dataclass(frozen=True)
class Status:
    """An HTTP error."""

    code: int
    message: str = "no"
    headers: Mapping[str, str] = field(default_factory=dict)
    error_code: str | None = None


@dataclass(frozen=True)
class Raw:
    """A body as it is, after which the connection is closed."""

    body: bytes
    code: int = 200
    announced: int | None = None
    """The length that is announced; more than the body has = it breaks off."""


@dataclass(frozen=True)
class Die:
    """The connection is reset without a word."""


@dataclass(frozen=True)
class Drip:
    """A body that comes a byte at a time and never ends."""

    every: float = 0.02


Step = Say | Status | Raw | Die | Drip
Script = Callable[["Asked"], Step]


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    number: int
    """From 0, over all requests."""
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        """The last message."""
        return str(self.body["messages"][-1]["content"])


class Loopback:
    """The server, on a free port, between `with` and its end."""

    def __init__(self, script: Script | Step = Say()) -> None:
        self.asked: list[Asked] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._script: Script = script if callable(script) else lambda _: script
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without this, small writes wait for the client's delayed acknowledgement: 40 ms a call.
            disable_nagle_algorithm = True
            wbufsize = -1

            def log_message(self, format: str, *args: Any) -> None:
                """Quiet."""

            def do_POST(self) -> None:
                loopback._serve(self)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hung up is what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        """The `api_base`."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers["content-length"])))
        with self._lock:
            asked = Asked(len(self.asked), body, {name.lower(): value for name, value in handler.headers.items()})
            self.asked.append(asked)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            self._answer(handler, self._script(asked))
        finally:
            with self._lock:
                self._in_flight -= 1

    def _answer(self, handler: BaseHTTPRequestHandler, step: Step) -> None:
        match step:
            case Say():
                if step.delay:
                    time.sleep(step.delay)
                _send(handler, 200, json.dumps(_completion(step)).encode())
            case Status():
                error = {"error": {"message": step.message, "code": step.error_code, "type": "x"}}
                _send(handler, step.code, json.dumps(error).encode(), step.headers)
            case Raw():
                handler.close_connection = True
                # Said, so that the client does not send its next request into a connection that is about to close.
                _send(handler, step.code, step.body, {"Connection": "close"}, length=step.announced)
            case Die():
                handler.close_connection = True
                linger = struct.pack("ii", 1, 0)
                handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                handler.connection.shutdown(socket.SHUT_RD)
                handler.connection.close()
            case Drip():
                handler.close_connection = True
                _send(handler, 200, b"{", length=1_000_000)
                while not self._over.wait(step.every):
                    handler.wfile.write(b" ")
                    handler.wfile.flush()


def _completion(step: Say) -> dict[str, Any]:
    message = {"role": "assistant", "content": step.text, "refusal": step.refusal}
    choice: dict[str, Any] = {"index": 0, "finish_reason": step.finish_reason, "message": message}
    if step.logprobs is not None:
        choice["logprobs"] = {
            "content": [
                {
                    "token": token,
                    "logprob": p,
                    "bytes": None,
                    "top_logprobs": [{"token": token, "logprob": p, "bytes": None}],
                }
                for token, p in step.logprobs
            ]
        }
    found: dict[str, Any] = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    if step.usage is not None:
        n_in, n_out = step.usage
        found["usage"] = {"prompt_tokens": n_in, "completion_tokens": n_out, "total_tokens": n_in + n_out}
    return found


def _send(
    handler: BaseHTTPRequestHandler,
    code: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    length: int | None = None,
) -> None:
    handler.send_response(code)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body) if length is None else length))
    handler.end_headers()
    handler.wfile.write(body)
    handler.wfile.flush()
