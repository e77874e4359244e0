"""JSON over HTTP with the standard library: no redirects (they would carry the key elsewhere), bounded replies."""

import base64
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import unquote, urlsplit

from ragaudit.errors import InputError

TIMEOUT = 60
"""Seconds without a byte."""
MOST = 512 * 1024 * 1024
"""Bytes of one reply."""


class Refused(InputError):
    """The server answered with an error status."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class Server:
    """One server, and how to log in: user and password of the URL, else the key."""

    def __init__(self, url: str, key: str | None) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._base = f"{parts.scheme}://{host}{parts.path.rstrip('/')}"
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if parts.username is not None:
            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
        elif key:
            self._headers["Authorization"] = key if " " in key else f"ApiKey {key}"
        self._opener = urllib.request.build_opener(_NoRedirect())

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the server says.

        Raises:
            Refused: It answered with an error status.
            ValueError: The reply is too large or no JSON.
            OSError: It cannot be reached.
        """
        data = None if body is None else json.dumps(body).encode("utf-8")
        request = urllib.request.Request(self._base + path, data=data, headers=self._headers, method=method)
        try:
            with self._opener.open(request, timeout=TIMEOUT) as reply:
                raw = reply.read(MOST + 1)
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, f"HTTP {error.code} {_reason(error.read(4096))}".strip()) from None
        if len(raw) > MOST:
            raise ValueError("a reply of more than 512 MB")
        try:
            return json.loads(raw)
        except ValueError:
            raise ValueError("the reply is no JSON") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A redirect is an answer like any other status that is not 200."""


def _reason(raw: bytes) -> str:
    try:
        found = json.loads(raw)["error"]
    except (ValueError, LookupError, TypeError):
        return ""
    return str(found.get("reason", "")) if isinstance(found, dict) else str(found)
