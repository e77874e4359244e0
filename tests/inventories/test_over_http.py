"""Chroma's own server on the loopback interface, and a stand-in for Qdrant's, after its REST reference."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from inventory_builders import CORPUS, VECTORS, needs

from ragaudit.inventories.clients import hushed

SECRET = "tops3cret-key"


@contextmanager
def chroma_server(folder):
    """`chroma run`, ended afterwards."""
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        Path(sys.executable).with_name("chroma"),
        "run",
        "--path",
        folder,
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    quiet = {**os.environ, "ANONYMIZED_TELEMETRY": "False"}
    process = subprocess.Popen(command, env=quiet, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)


@needs("chromadb", "chroma")
def test_a_chroma_server(tmp_path, export):
    with chroma_server(tmp_path) as url:
        with hushed():
            import chromadb
            from chromadb.config import Settings

            parts = urlsplit(url)
            settings = Settings(anonymized_telemetry=False)
            client = chromadb.HttpClient(host=parts.hostname, port=parts.port, settings=settings)
            collection = client.create_collection("helpdesk", embedding_function=None)
            collection.add(
                ids=[row[0] for row in CORPUS],
                embeddings=VECTORS,
                documents=[row[2] for row in CORPUS],
                metadatas=[{"source_id": row[1]} for row in CORPUS],
            )
            client.close()
        done = export("chroma", "--url", url)
    assert (done.code, done.account["rows"], done.account["complete"]) == (0, 3, True)
    assert {name: row["norm"] for name, row in done.chunks.items()} == {"kb-1#0": 3.0, "kb-1#1": 5.0, "kb-2#0": 1.0}
    assert done.index["arms"]["dense"]["metric"] == "l2"


@needs("chromadb", "chroma")
def test_a_server_that_is_not_there_is_an_input_error(export):
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert export("chroma", "--url", url).code == 3


class Qdrant:
    """What the server holds, and every request that it got."""

    def __init__(self):
        self.asked = []
        self.keys = set()
        self.count = len(CORPUS)
        self.grows = False

    def answer(self, method, path, body):
        self.asked.append((method, path))
        if path == "/collections":
            return {"collections": [{"name": "kb"}]}
        if path == "/aliases":
            return {"aliases": [{"alias_name": "live", "collection_name": "kb"}]}
        if path == "/collections/kb":
            vectors = {"size": 4, "distance": "Cosine"}
            optimizer = {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            }
            hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10000}
            config = {"params": {"vectors": vectors}, "hnsw_config": hnsw, "optimizer_config": optimizer}
            return {
                "status": "green", "optimizer_status": "ok", "points_count": 3, "segments_count": 1,
                "config": config, "payload_schema": {},
            }  # fmt: skip
        if path == "/collections/kb/points/count":
            return {"count": self.count}
        start = body.get("offset") or 0
        part = list(range(start, len(CORPUS)))[: body["limit"]]
        points = [
            {
                "id": n,
                "payload": {"page_content": CORPUS[n][2], "metadata": {"chunk_id": CORPUS[n][0]}},
                "vector": VECTORS[n],
            }
            for n in part
        ]
        following = part[-1] + 1 if part and part[-1] + 1 < len(CORPUS) else None
        self.count += 1 if following is None and self.grows else 0
        return {"points": points, "next_page_offset": following}


@contextmanager
def qdrant_server():
    qdrant = Qdrant()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def _serve(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            qdrant.keys.add(self.headers.get("api-key"))
            result = qdrant.answer(self.command, urlsplit(self.path).path, body)
            raw = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = _serve

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield qdrant, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@needs("qdrant_client", "qdrant")
def test_a_qdrant_server_is_only_read_and_its_key_is_not_shown(export, monkeypatch):
    from ragaudit.inventories import export as module

    monkeypatch.setattr(module, "PAGE", 2)
    monkeypatch.setenv("RAGAUDIT_STORE_KEY", SECRET)
    with qdrant_server() as (qdrant, url):
        monkeypatch.setenv("RAGAUDIT_STORE_URL", url)
        done = export("qdrant", "--collection", "kb")
    assert (done.code, list(done.chunks), done.account["complete"]) == (0, ["kb-1#0", "kb-1#1", "kb-2#0"], True)
    assert done.index["arms"]["dense"]["ann"] == "hnsw"
    assert qdrant.keys == {SECRET}
    posts = {path for method, path in qdrant.asked if method == "POST"}
    assert posts == {"/collections/kb/points/count", "/collections/kb/points/scroll"}
    assert SECRET not in done.err + json.dumps(done.account) + json.dumps(done.index)


@needs("qdrant_client", "qdrant")
def test_rows_written_meanwhile_make_it_incomplete(export):
    with qdrant_server() as (qdrant, url):
        qdrant.grows = True
        done = export("qdrant", "--url", url, "--collection", "kb")
    assert done.account["why_not_complete"] == ["the store held 3 rows at the start and 4 at the end"]
    assert (done.index["complete"], "the store held 3 rows" in done.index["note"]) == (False, True)


@pytest.mark.parametrize("url", ["http://user:tops3cret-key@127.0.0.1:1", "http://127.0.0.1:1/?api_key=tops3cret-key"])
@needs("qdrant_client", "qdrant")
def test_a_server_that_cannot_be_reached_is_named_without_secrets(url, export):
    done = export("qdrant", "--url", url)
    assert (done.code, SECRET in done.err) == (3, False)
    assert "http://127.0.0.1:1" in done.err
