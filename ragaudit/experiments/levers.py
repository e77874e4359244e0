"""The lever catalogue: what may be changed, in the order in which it is tried, and what each may be set to.

The catalogue is data (levers.toml). Its type cannot express wider access: a lever changes one of the keys below, and
none of them holds a predicate. A filter's levers say where it runs, how many candidates it gets and in which type its
value is sent; the lever of an ACL carries the revision of a sync from the source, never an ACL.
"""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ragaudit.errors import ConfigError
from ragaudit.experiments.parts import Part
from ragaudit.model.diagnosis import Stage
from ragaudit.model.experiment import Lever
from ragaudit.model.record import Concluded

Variable = Literal[
    # data: what is written to the index again; the value is the new revision
    "index.sources",
    "index.chunks",
    "index.namespace",
    "index.pruned",
    "index.acl",
    "index.metadata",
    "index.lexical",
    "index.vectors",
    "index.embeddings",
    # settings; `*` stands for an arm, a threshold, or both sides of the embedding
    "parser.name",
    "chunker.boundary",
    "chunker.overlap",
    "chunker.header",
    "chunker.target_tokens",
    "arms",
    "search.*.consistency",
    "search.*.score_direction",
    "search.*.tokenizer",
    "search.*.operator",
    "search.*.fetch_k",
    "search.*.type",
    "search.*.lambda_mult",
    "search.*.ef_search",
    "search.*.nprobe",
    "filter.mode",
    "filter.fetch_k",
    "filter.value_type",
    "filter.enforced",
    "fusion.id_key",
    "fusion.on_empty_arm",
    "fusion.implementation",
    "fusion.k",
    "fusion.weights",
    "fusion.method",
    "thresholds.*.on",
    "thresholds.*.value",
    "thresholds.*.direction",
    "rewrite.enabled",
    "rewrite.standalone",
    "embedding.query.model",
    "embedding.query.prefix",
    "embedding.corpus.prefix",
    "embedding.corpus.normalised",
    "embedding.corpus.max_tokens",
    "embedding.*.model",
    "metric.index",
    "rerank.model",
    "rerank.candidates",
    "rerank.top_n",
    "rerank.score",
    "rerank.blend",
    "rerank.on_error",
    "k_final",
    "pack.dedupe_by",
    "pack.id_key",
    "pack.parent_key",
    "pack.render",
    "pack.token_budget",
    "pack.on_overflow",
    "pack.max_per_source",
    "generator.context_window",
    "generator.max_tokens",
    "generator.prompt",
    "generator.synthesis",
    "generator.abstention",
]
"""Every key of `[pipeline]` that a lever may change. `filter.expected` and `[acl]` are not among them."""

Stack = Literal["LangChain", "LlamaIndex", "Haystack", "Qdrant", "pgvector", "Elasticsearch"]

ALWAYS_FROZEN = ("the ACL rule and every filter clause", "the queries and their gold", "K")
"""What stays as it is under every lever (K except under the lever that changes it)."""

_NAME = re.compile(r"[\w.:/@+ -]{1,100}")
_Kind = Literal["number", "number or off", "name", "names", "text", "switch", "weights", "revision"]


class _Entry(Concluded):
    """One lever of the data file; what it leaves out comes from its step."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
    variable: Variable
    values: _Kind | tuple[str, ...]
    summary: str
    stages: tuple[Stage, ...]
    causes: Annotated[tuple[str, ...], Field(min_length=1)]
    moves: str | None = None
    watch: tuple[str, ...] | None = None
    frozen: tuple[str, ...] | None = None
    authorisation: Literal["index_write", ""] | None = None
    given: dict[str, Part] = Field(default_factory=dict)
    unless: dict[str, Part] = Field(default_factory=dict)
    how: Annotated[dict[Stack, str], Field(min_length=1)]


class _Step(Concluded):
    """One place in the order, and what its levers have in common."""

    title: str
    frozen: tuple[str, ...]
    moves: str
    watch: tuple[str, ...]
    authorisation: Literal["index_write", ""] = ""
    lever: tuple[_Entry, ...]


class _File(Concluded):
    step: tuple[_Step, ...]


def lever(name: str) -> Lever:
    """The lever of that name.

    Raises:
        ConfigError: There is none.
    """
    if name not in _BY_NAME:
        raise ConfigError(f"lever '{name}': is not known. `ragaudit levers` lists the {len(LEVERS)} that are.")
    return _BY_NAME[name]


def lever_for(cause: str) -> tuple[Lever, ...]:
    """The levers that answer a cause, the one to try first in front; none for an unknown cause."""
    return tuple(known for known in LEVERS if cause in known.causes)


def step_of(known: Lever) -> str:
    """The title of the lever's place in the order."""
    return STEPS[known.order // 100 - 1]


def is_retrieval(known: Lever) -> bool:
    """False for a lever that answers only the generator's faults: it moves no retrieval metric."""
    return known.stages != (Stage.GENERATE,)


def takes(known: Lever) -> str:
    """What the lever may be set to, in words: a kind of value, or the values themselves."""
    values = _VALUES[known.name]
    return values if isinstance(values, str) else " or ".join(value or '""' for value in values)


def where(known: Lever) -> str:
    """In which pipelines the lever answers a cause that does not prove by itself that it fits; empty = in every one."""
    only = [f"{cause} only with {part}" for cause, part in known.given.items()]
    never = [f"{cause} not with {part}" for cause, part in known.unless.items()]
    return "; ".join(only + never)


def admits(known: Lever, value: Any) -> bool:
    """May this lever be set to this value? None, an empty value and a predicate are admitted by no lever.

    The exceptions are the two that turn something off that has no part in access: a score floor (None) and the
    reranker ("" or "none").
    """
    values = _VALUES[known.name]
    if isinstance(values, tuple):
        return isinstance(value, str) and value in values
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match values:
        case "number":
            return is_number
        case "number or off":
            return value is None or is_number
        case "switch":
            return isinstance(value, bool)
        case "names":
            return isinstance(value, list | tuple) and bool(value) and all(map(_is_name, value))
        case "weights":
            return isinstance(value, dict) and bool(value) and all(_is_weight(*pair) for pair in value.items())
        case "text":
            return isinstance(value, str) and len(value) <= 1000
        case "revision":
            return _is_name(value) and any(char.isdigit() for char in value)
        case _:
            return _is_name(value)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _is_weight(arm: Any, weight: Any) -> bool:
    return _is_name(arm) and isinstance(weight, int | float) and not isinstance(weight, bool) and weight >= 0


def _read() -> _File:
    return _File.model_validate(tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")))


def _lever(step: _Step, entry: _Entry, order: int) -> Lever:
    frozen = step.frozen if entry.frozen is None else entry.frozen
    always = (what for what in ALWAYS_FROZEN if not (what == "K" and entry.variable == "k_final"))
    return Lever(
        name=entry.name,
        order=order,
        variable=entry.variable,
        summary=entry.summary,
        stages=entry.stages,
        causes=entry.causes,
        moves=entry.moves or step.moves,
        watch=step.watch if entry.watch is None else entry.watch,
        frozen=tuple(dict.fromkeys((*frozen, *always))),
        authorisation=(step.authorisation if entry.authorisation is None else entry.authorisation) or None,
        given={cause: part.value for cause, part in entry.given.items()},
        unless={cause: part.value for cause, part in entry.unless.items()},
        how={str(stack): text for stack, text in entry.how.items()},
    )


_FILE = _read()

STEPS: tuple[str, ...] = tuple(step.title for step in _FILE.step)
"""The places in the order, each with a title. Place n holds the levers of order n01, n02, ..."""

LEVERS: tuple[Lever, ...] = tuple(
    _lever(step, entry, 100 * place + number)
    for place, step in enumerate(_FILE.step, start=1)
    for number, entry in enumerate(step.lever, start=1)
)
"""Every lever, in the order in which they are tried."""

_BY_NAME = {known.name: known for known in LEVERS}
_VALUES = {entry.name: entry.values for step in _FILE.step for entry in step.lever}
