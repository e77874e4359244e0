"""The lists that `--stage` may name, the other words for them, and the names by which tools call their steps."""

import re
from collections.abc import Mapping
from enum import StrEnum

from ragaudit.errors import ConfigError


class Stage(StrEnum):
    """What `--stage` may say."""

    ARM = "arm"
    FUSED = "fused"
    AFTER_FILTER = "after_filter"
    AFTER_THRESHOLD = "after_threshold"
    RERANK_INPUT = "rerank_input"
    AFTER_RERANK = "after_rerank"
    FINAL = "final"
    ANSWER = "answer"
    IGNORE = "ignore"
    UNKNOWN = "unknown"
    """One list, of which nothing says which stage made it."""


LISTS = (Stage.FUSED, Stage.AFTER_FILTER, Stage.AFTER_THRESHOLD, Stage.RERANK_INPUT, Stage.AFTER_RERANK)
"""The lists on the way from the arms to the context, in order: fields of a trace."""
RERANKS = re.compile(r"re-?_?rank|(^|[^a-z])rank|compress|cross.?encod", re.IGNORECASE)
"""In the name of a step that reranks."""
MERGES = re.compile(r"(^|[^a-z])rrf|fus(e|ion)|merge|ensemble|joiner|reciprocal", re.IGNORECASE)
"""In the name of a step that merges lists."""
_ALSO = {"fusion": Stage.FUSED, "rerank": Stage.AFTER_RERANK, "reranked": Stage.AFTER_RERANK, "context": Stage.FINAL}


def stage_of_word(word: str) -> Stage | None:
    """The stage that a word names, `arm:NAME` too; None = there is none such."""
    word = word.partition(":")[0] if word.startswith("arm:") else word
    if word in _ALSO:
        return _ALSO[word]
    return next((each for each in Stage if each.value == word and each is not Stage.UNKNOWN), None)


def check(stages: Mapping[str, str]) -> None:
    """Refuse what `--stage` cannot mean.

    Raises:
        ConfigError: A value is no stage.
    """
    for name, word in stages.items():
        if stage_of_word(word) is None:
            known = ", ".join(each.value for each in Stage if each is not Stage.UNKNOWN)
            raise ConfigError(f"--stage {name}={word}: no such list. Use arm:NAME, or one of: {known}.")
