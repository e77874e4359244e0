import json
import struct
from array import array

import pytest
from inventory_builders import CORPUS, VECTORS, needs

from ragaudit.inventories.faiss_index import read_head


def flat(vectors, letters=b"IxF2", metric=1):
    """The bytes that faiss.write_index gives for a flat index."""
    dim = len(vectors[0])
    numbers = array("f", [value for vector in vectors for value in vector])
    head = struct.pack("<iqqq?i", dim, len(vectors), 1 << 20, 1 << 20, True, metric)
    return letters + head + struct.pack("<Q", len(numbers)) + numbers.tobytes()


@pytest.fixture
def folder(tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    (store / "index.faiss").write_bytes(flat([VECTORS[0], VECTORS[2], VECTORS[1]]))
    docs = {row[0]: {"page_content": row[2], "metadata": {"source_id": row[1], "acl": row[3]}} for row in CORPUS}
    places = {"0": "kb-1#0", "1": "kb-2#0", "2": "gone"}
    (store / "docstore.json").write_text(json.dumps({"docstore": docs, "index_to_docstore_id": places}))
    return store


def test_documents_with_their_vectors_and_one_without(folder, export):
    done = export("faiss", folder)
    assert (done.code, done.account["rows"], done.account["complete"]) == (0, 3, True)
    assert {name: (row["in"]["dense"], row.get("norm")) for name, row in done.chunks.items()} == {
        "kb-1#0": (True, 3.0),
        "kb-1#1": (False, None),
        "kb-2#0": (True, 1.0),
    }
    assert done.chunks["kb-1#0"]["acl"] == CORPUS[0][3]
    dense = done.index["arms"]["dense"]
    assert (dense["metric"], dense["ann"], dense["chunks"]) == ("l2", "exact", 2)
    assert done.account["remarks"] == ["1 vectors have no document: they can be found and not be read"]


def test_a_pickle_is_refused_with_the_line_that_writes_json(folder, export):
    (folder / "docstore.json").unlink()
    (folder / "index.pkl").write_bytes(b"cos\nsystem\n(S'touch pwned'\ntR.")
    done = export("faiss", folder)
    assert done.code == 3
    assert "index.pkl is a Python pickle: reading it runs what is in it, so it is not read." in done.err
    assert 'json.dump({"docstore": {i: {"page_content": d.page_content' in done.err


@pytest.mark.parametrize("content", [b"", b"IxF2", b"PK\x03\x04 something else", b"IxF2\x04\x00"])
def test_what_is_no_index_is_refused(content, folder, export):
    (folder / "index.faiss").write_bytes(content)
    done = export("faiss", folder)
    assert done.code == 3
    assert "FAISS index" in done.err


@needs("faiss", "milvus")
@pytest.mark.filterwarnings("ignore")
def test_the_head_is_read_as_the_library_writes_it(tmp_path):
    import faiss
    import numpy as np

    vectors = np.array(VECTORS * 20, dtype="float32")
    flat_ip, hnsw = faiss.IndexFlatIP(4), faiss.IndexHNSWFlat(4, 8)
    ivf = faiss.IndexIVFFlat(faiss.IndexFlatL2(4), 4, 2)
    ivf.train(vectors)
    mapped = faiss.IndexIDMap(faiss.IndexFlatL2(4))
    mapped.add_with_ids(vectors, np.arange(60))
    for index in (flat_ip, hnsw, ivf):
        index.add(vectors)
    seen = []
    for n, index in enumerate((flat_ip, hnsw, ivf, mapped)):
        path = tmp_path / f"{n}.faiss"
        faiss.write_index(index, str(path))
        head = read_head(path)
        with path.open("rb") as stream:
            seen.append((head.kind, head.dim, head.rows, head.metric, head.held(stream, 1, with_vectors=True).norm))
    assert seen == [
        ("flat", 4, 60, "dot", 5.0),
        ("hnsw", 4, 60, "l2", None),
        ("ivf", 4, 60, "l2", None),
        ("flat", 4, 60, "l2", 5.0),
    ]
