"""Which dialect a span speaks, and its step."""

from collections.abc import Callable, Sequence

from ragaudit.importers.spans import genai, langfuse, mlflow, native_haystack, openinference, openllmetry, trulens
from ragaudit.importers.spans.span import Span
from ragaudit.importers.spans.step import Step

Dialect = Callable[[Span], Step | None]
DIALECTS: Sequence[Dialect] = (
    openinference.step_of,
    native_haystack.step_of,
    mlflow.step_of,
    trulens.step_of,
    langfuse.step_of,
    openllmetry.step_of,
    genai.step_of,
)
"""The one that says most first: where two instrumentations saw the same retrieval, its word counts."""
ORDER = (
    openinference.NAME,
    native_haystack.NAME,
    mlflow.NAME,
    trulens.NAME,
    langfuse.NAME,
    openllmetry.NAME,
    genai.NAME,
)


def step_of(span: Span) -> Step | None:
    """What the span means; None = nothing to a RAG pipeline that any dialect knows."""
    return next((step for dialect in DIALECTS if (step := dialect(span)) is not None), None)
