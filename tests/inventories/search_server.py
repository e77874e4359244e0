"""A loopback stand-in for the read side of Elasticsearch and OpenSearch, after their reference pages."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from inventory_builders import CORPUS, VECTORS

MAPPING = {
    "kb-2026.11.01": {
        "mappings": {
            "properties": {
                "text": {"type": "text"},
                "source_id": {"type": "keyword"},
                "vector": {
                    "type": "dense_vector",
                    "dims": 4,
                    "similarity": "cosine",
                    "index_options": {"type": "hnsw"},
                },
                "metadata": {"properties": {"tenant": {"type": "keyword"}}},
            }
        }
    }
}


def hits():
    return [
        {
            "_index": "kb-2026.11.01",
            "_id": row[0],
            "_source": {
                "text": row[2],
                "source_id": row[1],
                "metadata": {"tenant": "acme", "acl": row[3]},
                **({} if n == 1 else {"vector": VECTORS[n]}),
            },
            "sort": [row[0] if n is None else n],
        }
        for n, row in enumerate(CORPUS)
    ]


class Search:
    """What the server holds, and every request that it got."""

    def __init__(self, distribution):
        self.distribution = distribution
        self.hits = hits()
        if distribution == "opensearch":
            for hit in self.hits:
                hit["sort"] = [hit["_id"]]
        self.asked = []
        self.authorization = set()
        self.privileges = {"indices": []}
        self.stats = True
        self.failed_shards = 0
        self.forbidden = False
        self.hides_vectors = False

    @staticmethod
    def _without_vector(hit):
        return {**hit, "_source": {name: value for name, value in hit["_source"].items() if name != "vector"}}

    def answer(self, method, path, body):
        if self.forbidden:
            return 401, {"error": {"reason": "unable to authenticate with key tops3cret"}}
        opensearch = self.distribution == "opensearch"
        if path == "/":
            number = {"number": "3.1.0", "distribution": "opensearch"} if opensearch else {"number": "9.2.1"}
            return 200, {"version": number}
        if path == "/_cat/indices":
            return 200, [{"index": "kb"}, {"index": ".security"}]
        if path == "/kb/_mapping":
            return 200, MAPPING
        if path == "/kb/_count":
            has_vector = [hit for hit in self.hits if "vector" in hit["_source"]]
            return 200, {"count": len(self.hits if body is None else has_vector)}
        if path == "/kb/_search":
            shown = {} if self.hides_vectors else {"vector": VECTORS[0]}
            return 200, {"hits": {"hits": [{"_source": shown}]}}
        if path.startswith("/kb/_stats"):
            counts = {"docs": {"deleted": 4}, "indexing": {"index_total": len(self.hits), "delete_total": 0}}
            return (200, {"_all": {"primaries": counts}}) if self.stats else (403, {"error": {"reason": "no"}})
        if path == "/_security/user/_privileges" and not opensearch:
            if self.privileges is None:
                return 400, {"error": {"reason": "Cannot retrieve privileges for API keys with role descriptors."}}
            return 200, self.privileges
        if (method, path) == ("POST", "/kb/_search/point_in_time" if opensearch else "/kb/_pit"):
            return 200, {"pit_id" if opensearch else "id": "pit-1"}
        if method == "DELETE":
            return 200, {}
        if (method, path) == ("POST", "/_search"):
            after = body.get("search_after")
            left = [hit for hit in self.hits if after is None or hit["sort"] > after]
            left = [self._without_vector(hit) if self.hides_vectors else hit for hit in left]
            page = {"hits": {"hits": left[: body["size"]]}, "_shards": {"failed": self.failed_shards}}
            return 200, {**page, "pit_id": "pit-1"}
        return 404, {"error": {"reason": "no such index"}}


@contextmanager
def running(distribution="elasticsearch"):
    """The server and its address."""
    search = Search(distribution)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def _serve(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = urlsplit(self.path).path
            search.asked.append((self.command, path, body))
            search.authorization.add(self.headers.get("Authorization"))
            status, value = search.answer(self.command, path, body)
            raw = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_POST = do_DELETE = _serve

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield search, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
