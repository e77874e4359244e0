from redact_builders import walker

from ragaudit.redact.fields import TextMode


def test_no_answer_is_left_when_texts_are_dropped():
    row = {"query_id": "q1", "answer_text": "Mueller", "answer": {"text": "Mueller"}}
    shown = walker(TextMode.DROP).row(row, "export.jsonl")
    assert "Mueller" not in str(shown)
    assert shown["answer_text"].startswith("<text-")
