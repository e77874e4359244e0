"""Against a loopback server that answers as the two products' reference pages say."""

import json

import pytest
from inventory_builders import CORPUS
from search_server import running

from ragaudit.inventories import export as module
from ragaudit.inventories.records import KEY_VARIABLE

SECRET = "tops3cret"


@pytest.fixture(params=["elasticsearch", "opensearch"])
def search(request):
    with running(request.param) as (server, url):
        yield server, url


def test_every_document_comes_with_its_arms(search, export, monkeypatch):
    server, url = search
    monkeypatch.setattr(module, "PAGE", 2)
    done = export(server.distribution, "--url", url)
    assert (done.code, done.account["complete"], done.index["revision"]) == (0, True, "kb-2026.11.01")
    assert {name: (row["in"], row.get("norm")) for name, row in done.chunks.items()} == {
        "kb-1#0": ({"dense": True, "bm25": True}, 3.0),
        "kb-1#1": ({"dense": False, "bm25": True}, None),
        "kb-2#0": ({"dense": True, "bm25": True}, 1.0),
    }
    row = done.chunks["kb-1#0"]
    assert (row["text"], row["source_id"], row["acl"], row["namespace"]) == (
        CORPUS[0][2],
        "kb-1",
        CORPUS[0][3],
        "kb-2026.11.01",
    )
    assert row["metadata"] == {"source_id": "kb-1", "tenant": "acme", "acl": CORPUS[0][3]}
    dense = done.index["arms"]["dense"]
    assert (dense["metric"], dense["ann"], dense["tombstones"], dense["chunks"]) == ("cosine", "hnsw", 4, 2)


def test_only_reads_are_sent_and_the_point_in_time_is_closed(search, export):
    server, url = search
    export(server.distribution, "--url", url)
    elastic = {("POST", "/kb/_pit"), ("DELETE", "/_pit")}
    opened = {("POST", "/kb/_search/point_in_time"), ("DELETE", "/_search/point_in_time")}
    wanted = opened if server.distribution == "opensearch" else elastic
    writes = {(method, path) for method, path, _ in server.asked if method != "GET"}
    assert writes == wanted | {("POST", "/_search"), ("POST", "/kb/_search"), ("POST", "/kb/_count")}


def test_without_vectors_they_are_not_fetched_and_presence_is_not_asserted(search, export):
    server, url = search
    done = export(server.distribution, "--url", url, "--no-vectors")
    bodies = [body for _, path, body in server.asked if path == "/_search"]
    assert all(body["_source"] == {"excludes": ["vector"]} for body in bodies)
    assert done.chunks["kb-1#0"]["in"] == {"bm25": True}
    assert done.index["arms"]["dense"]["chunks"] == 2


def test_vectors_that_are_not_in_the_source_are_not_called_absent(search, export):
    server, url = search
    server.hides_vectors = True
    done = export(server.distribution, "--url", url)
    assert [row["in"] for row in done.chunks.values()] == [{"bm25": True}] * 3
    assert done.index["arms"]["dense"]["chunks"] == 2
    assert done.account["remarks"][0] == (
        "vector is not in _source: which rows have it, and how long it is, cannot be read"
    )


def test_a_narrowed_user_is_not_complete(export):
    with running() as (server, url):
        server.privileges = {"indices": [{"names": ["kb"], "query": ['{"term": {"tenant": "acme"}}']}]}
        done = export("elasticsearch", "--url", url)
    assert done.account["why_not_complete"] == ["document level security narrows what this user sees"]


@pytest.mark.parametrize("has_key", [True, False])
def test_an_api_key_that_cannot_ask_for_its_rights_is_told_so(export, monkeypatch, has_key):
    if has_key:
        monkeypatch.setenv(KEY_VARIABLE, SECRET)
    with running() as (server, url):
        server.privileges = None
        done = export("elasticsearch", "--url", url)
    unasked = "document level security cannot be asked for here: if this user has it, pass --complete no"
    assert (unasked in done.account["remarks"]) is has_key


def test_a_shard_that_does_not_answer_ends_the_export(search, export):
    server, url = search
    server.failed_shards = 1
    done = export(server.distribution, "--url", url)
    assert done.code == 3
    assert "1 shards did not answer. Run the same command again" in done.err


def test_an_interrupted_export_goes_on_where_the_store_allows_it(search, export, monkeypatch):
    from ragaudit.inventories.stores.elasticsearch import _Index

    server, url = search
    monkeypatch.setattr(module, "PAGE", 2)
    pages = _Index.pages

    def failing(self, after, size):
        found = pages(self, after, size)
        yield next(found)
        found.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(_Index, "pages", failing)
    assert export(server.distribution, "--url", url).code == 130
    monkeypatch.setattr(_Index, "pages", pages)
    server.asked.clear()
    done = export(server.distribution, "--url", url)
    starts = [body.get("search_after") for _, path, body in server.asked if path == "/_search"]
    assert (done.account["rows"], done.account["complete"]) == (3, True)
    if server.distribution == "opensearch":
        assert ("Going on after 2 rows." in done.err, starts[0]) == (True, ["kb-1#1"])
    else:
        assert ("cannot go on in the middle: starting again." in done.err, starts[0]) == (True, None)


def test_keys_are_sent_and_never_shown(search, export, monkeypatch):
    server, url = search
    monkeypatch.setenv("RAGAUDIT_STORE_KEY", SECRET)
    done = export(server.distribution, "--url", url)
    assert server.authorization == {f"ApiKey {SECRET}"}
    server.forbidden = True
    refused = export(server.distribution, "--url", url, "--replace")
    assert refused.code == 3
    assert "HTTP 401 unable to authenticate with key ***. Set RAGAUDIT_STORE_KEY" in refused.err
    written = "".join(path.read_text("utf-8") for path in done.out.glob("*.json*"))
    assert SECRET not in refused.err + done.err + json.dumps(done.account) + written


def test_a_password_in_the_address_is_sent_and_never_shown(search, export):
    server, url = search
    done = export(server.distribution, "--url", url.replace("//", f"//me:{SECRET}@"))
    assert server.authorization == {"Basic bWU6dG9wczNjcmV0"}
    assert done.account["place"] == url
    assert SECRET not in json.dumps(done.account) + done.err


def test_statistics_that_are_forbidden_are_said(search, export):
    server, url = search
    server.stats = False
    done = export(server.distribution, "--url", url)
    assert done.account["complete"] is True
    assert done.account["remarks"][0].startswith("this user may not read the index statistics")
