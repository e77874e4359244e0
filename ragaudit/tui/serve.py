"""The app in a browser: a web server on the loopback address, for the person who started it and nobody else."""

import hmac
import logging
import secrets
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from ragaudit.errors import ConfigError, MissingExtraError

HOST = "127.0.0.1"
WEB = Path(__file__).parent / "web"
TITLE = "ragaudit review"


def serve(arguments: Sequence[str], *, port: int, say: Callable[[str], None]) -> None:
    """Serve `ragaudit review ARGUMENTS` until ctrl+c. Each page that is opened is an app of its own on the one audit.

    Args:
        arguments: The audit and the options of `ragaudit review`.
        port: Of the loopback address.
        say: Tells people where to look.

    Raises:
        MissingExtraError: textual-serve is not installed.
        ConfigError: The port is taken.
    """
    try:
        import textual_serve  # noqa: F401 - asked for before anything else
    except ImportError:
        raise MissingExtraError("--serve: needs textual-serve. Install it: pip install 'ragaudit[serve]'.") from None
    from aiohttp import web

    key = secrets.token_urlsafe(16)
    say(f"Open http://{HOST}:{port}/?key={key} in a browser on this machine. ctrl+c ends.")
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)  # its lines hold the key
    try:
        web.run_app(application(arguments, port=port, key=key), host=HOST, port=port, print=None)
    except OSError as error:
        raise ConfigError(f"port {port}: {error.strerror}. Choose another with --port.") from error


async def application(arguments: Sequence[str], *, port: int, key: str) -> Any:
    """textual-serve's own web application behind a door: this address, this origin, and the key.

    Without these a page from elsewhere that is open in the same browser could drive the app, and so could another
    user of this machine.
    """
    from textual_serve.server import Server

    command = shlex.join([sys.executable, "-P", "-m", "ragaudit.cli.main", "review", *arguments, "--in-browser"])
    server = Server(command, host=HOST, port=port, title=TITLE, templates_path=WEB)
    app = await server._make_app()  # what `Server.serve` runs; there is no public name for it
    app.on_startup.clear()  # prints a banner to stdout
    app.middlewares.append(_door(port, key))
    return app


def _door(port: int, key: str) -> Any:
    from aiohttp import web

    here = f"{HOST}:{port}"
    cookie = f"ragaudit-{port}"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        f"font-src 'self'; connect-src 'self' ws://{here}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    @web.middleware
    async def door(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> Any:
        if request.host != here or request.headers.get("Origin", f"http://{here}") != f"http://{here}":
            raise web.HTTPForbidden(text=f"Only http://{here}/ is served.")
        shown = request.query.get("key") or request.cookies.get(cookie) or ""
        if not request.path.startswith("/static/") and not hmac.compare_digest(shown.encode(), key.encode()):
            raise web.HTTPForbidden(text="The address lacks its key: open the one that ragaudit printed.")
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = policy
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Content-Type-Options"] = "nosniff"
            if request.path == "/":
                response.set_cookie(cookie, key, httponly=True, samesite="Strict")
        return response

    return door
