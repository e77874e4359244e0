"""The app in a browser: the page asks nobody else for anything, and nobody else may ask for the page."""

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ragaudit.errors import ConfigError, MissingExtraError
from ragaudit.model.review import ReviewVerdict
from ragaudit.store import Reviews
from ragaudit.tui import serve as module
from ragaudit.tui.serve import application, serve
from tests.conftest import ROOT
from tests.tui.builders import lost_at_pack, write

KEY = "the-key"
WEB = Path(module.__file__).parent / "web" / "app_index.html"


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    with pytest.raises(MissingExtraError) as caught:
        serve(["run.audit"], port=8000, say=lambda text: None)
    assert str(caught.value) == "--serve: needs textual-serve. Install it: pip install 'ragaudit[serve]'."
    assert caught.value.exit_code == 2


def test_our_page_names_no_host_and_holds_no_script():
    page = WEB.read_text()
    assert not re.findall(r"https?:|//\w", page)
    assert re.findall(r"<script[^>]*>", page) == ['<script src="{{ config.static.url }}js/textual.js">']
    assert "<script></script>" not in page.replace(' src="{{ config.static.url }}js/textual.js"', " ")


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def served(arguments, steps):
    """Serve on a free port of the loopback address and run steps(session, address)."""
    pytest.importorskip("textual_serve", reason="the extra `serve` is not installed")
    import aiohttp
    from aiohttp import web

    async def body():
        port = free_port()
        runner = web.AppRunner(await application(arguments, port=port, key=KEY))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            # cookies of an address without a name are left out otherwise
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                await steps(session, f"http://127.0.0.1:{port}")
        finally:
            await runner.cleanup()

    asyncio.run(body())


def test_the_page_loads_nothing_from_elsewhere():
    async def steps(session, address):
        async with session.get(f"{address}/?key={KEY}") as response:
            assert response.status == 200
            page, headers = await response.text(), response.headers
        assert {found.rpartition(":")[0] for found in re.findall(r"(?:https?|ws)://[^/\"']+", page)} == {
            "http://127.0.0.1",
            "ws://127.0.0.1",
        }
        assert "ragaudit review" in page
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "http:" not in policy and "*" not in policy
        assert headers["Referrer-Policy"] == "no-referrer"
        for found in re.findall(r'(?:src|href)="(http[^"]+)"', page):
            async with session.get(found) as response:
                assert response.status == 200
                style = await response.text() if found.endswith(".css") else ""
            assert "url(" not in style and "@import" not in style

    served(["run.audit"], steps)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/?key=wrong", {}),
        ("/ws", {}),
        ("/download/x", {}),
        (f"/?key={KEY}", {"Host": "elsewhere.example"}),
        (f"/ws?key={KEY}", {"Origin": "http://elsewhere.example"}),
        (f"/ws?key={KEY}", {"Origin": "null"}),
    ],
)
def test_without_the_key_or_from_another_origin_nothing_is_served(path, headers):
    async def steps(session, address):
        async with session.get(address + path, headers=headers) as response:
            assert response.status == 403
            assert KEY not in await response.text()

    served(["run.audit"], steps)


def test_a_person_steps_through_the_audit_in_the_page_and_ctrl_c_ends_it(tmp_path):
    pytest.importorskip("textual_serve", reason="the extra `serve` is not installed")
    import aiohttp

    audit = write(tmp_path / "run $x.audit", [lost_at_pack("q1"), lost_at_pack("q2")])
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "ragaudit.cli.main", "review", str(audit), "--serve", "--port", str(free_port())]

    async def steps(address, key):
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar, timeout=aiohttp.ClientTimeout(60)) as session:
            async with session.get(f"{address}/?key={key}") as response:
                assert response.status == 200
            async with session.ws_connect(f"{address}/ws?width=80&height=24", origin=address) as page:
                seen = b""
                while b"0 reviewed" not in seen:
                    seen += (await page.receive()).data
                await page.send_json(["stdin", "1"])
                while b"saved: q1 agree" not in seen:
                    seen += (await page.receive()).data
                await page.send_json(["stdin", "q"])
                async for _ in page:
                    pass

    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            found = re.search(r"(http://127\.0\.0\.1:\d+)/\?key=(\S+)", server.stderr.readline())
            assert found is not None
            asyncio.run(_answered(found[1], steps(found[1], found[2])))
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(timeout=60) == 0
    with Reviews.open(audit) as reviews:
        assert reviews.of("q1").verdict is ReviewVerdict.AGREE


async def _answered(address, steps):
    """The address is said just before it is listened on."""
    host, port = address.removeprefix("http://").split(":")
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except ConnectionRefusedError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            await writer.wait_closed()
            break
    await steps


def test_a_port_that_is_taken_is_said():
    pytest.importorskip("textual_serve", reason="the extra `serve` is not installed")
    said = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: .*Choose another with --port"):
            serve(["run.audit"], port=port, say=said.append)
    assert re.fullmatch(rf"Open http://127\.0\.0\.1:{port}/\?key=\S{{22}} in a browser .*", said[0])
