"""Runs and events as the tools write them, in as few words as a test needs; and files of them."""

import json


def jsonl(path, records):
    """A JSONL file."""
    path.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
    return path


def document(chunk_id, text=None, **metadata):
    """A document of LangChain as `model_dump` writes it."""
    return {"id": chunk_id, "page_content": text or f"the text of {chunk_id}", "type": "Document", "metadata": metadata}


def run(name, parent=None, /, *, second=0, kind="retriever", query="q?", hits=None, trace="t", **more):
    """A run of LangSmith; its id is its name."""
    outputs = {"documents": [each if isinstance(each, dict) else document(each) for each in hits or ()]}
    return {
        "id": name,
        "name": name,
        "run_type": kind,
        "trace_id": trace,
        "parent_run_id": parent,
        "start_time": f"2026-11-29T10:00:{second:02}.000000+00:00",
        "end_time": f"2026-11-29T10:01:{second:02}.000000+00:00",
        "inputs": {"query": query},
        "outputs": outputs if hits is not None else None,
        **more,
    }


def observation(name, parent=None, /, *, second=0, kind="RETRIEVER", output=None, trace="t", **more):
    """An observation of Langfuse; its id is its name."""
    return {
        "id": name,
        "traceId": trace,
        "type": kind,
        "name": name,
        "startTime": f"2026-11-29T10:00:{second:02}.000Z",
        "parentObservationId": parent,
        "input": "q?",
        "output": output,
        "metadata": {},
        **more,
    }


def node(chunk_id, score):
    """A NodeWithScore of LlamaIndex."""
    return {"node": {"id_": chunk_id, "text": f"the text of {chunk_id}", "class_name": "TextNode"}, "score": score}


def event(name, span, **more):
    """An event of LlamaIndex; the span gets a uuid as the library makes one."""
    whole = f"{span}-00000000-0000-0000-0000-00000000000{len(span) % 10}"
    return {"class_name": f"{name}Event", "span_id": whole, "timestamp": "2026-11-29T10:00:00", "tags": {}, **more}


def retrieval(span, query, *nodes, inside=()):
    """The two events of a retriever, with the events that come between them."""
    begin = event("RetrievalStart", f"{span}.retrieve", str_or_query_bundle=query)
    end = event("RetrievalEnd", f"{span}.retrieve", str_or_query_bundle=query, nodes=list(nodes))
    return [begin, *inside, end]
