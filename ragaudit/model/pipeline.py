"""The frozen pipeline configuration of a run: `[pipeline]` of ragaudit.toml. Only values are evidence."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticKnownError

from ragaudit.model.record import Observed


def _no_text(value: Any) -> Any:
    if isinstance(value, str | bool):
        raise PydanticKnownError("float_type")
    return value


def _no_text_whole(value: Any) -> Any:
    if isinstance(value, str | bool):
        raise PydanticKnownError("int_type")
    return value


Whole = Annotated[int, BeforeValidator(_no_text_whole)]
"""A whole number. A text that holds one is none, and neither is true."""
Real = Annotated[float, BeforeValidator(_no_text)]
"""A number, as strictly."""


class EmbeddingSide(Observed):
    """How the query side or the corpus side is embedded. `prefix = ""` = known to be none."""

    model: str | None = None
    dim: Whole | None = None
    prefix: str | None = None
    normalised: bool | None = None
    max_tokens: Whole | None = None
    requires_prefix: bool | None = None
    languages: tuple[str, ...] | None = None


class Embedding(Observed):
    """Both sides of the embedding."""

    query: EmbeddingSide = Field(default_factory=EmbeddingSide)
    corpus: EmbeddingSide = Field(default_factory=EmbeddingSide)


class Metric(Observed):
    """The distance that the vectors were trained for."""

    expected: str | None = None


class Search(Observed):
    """How one arm searches."""

    type: str | None = None
    fetch_k: Whole | None = None
    ef_search: Whole | None = None
    nprobe: Whole | None = None
    lists: Whole | None = None
    lambda_mult: Real | None = None
    operator: str | None = None
    tokenizer: str | None = None
    consistency: str | None = None


class Filter(Observed):
    """Where the metadata and ACL filter runs: before (`pre`), during (`scan`) or after (`post`) the search."""

    mode: str | None = None
    fetch_k: Whole | None = None
    expected: dict[str, Any] | None = None


class Fusion(Observed):
    """How the arms' lists become one."""

    method: str | None = None
    k: Real | None = None
    weights: dict[str, Real] | None = None
    id_key: str | None = None
    rank_base: Whole | None = None


class Threshold(Observed):
    """A cut by score: value, the list it works on, the score it reads, and which side is dropped."""

    value: Real | None = None
    on: str | None = None
    score: str | None = None
    direction: str | None = None
    kind: str | None = None


class Rerank(Observed):
    """The reranker."""

    model: str | None = None
    candidates: Whole | None = None
    top_n: Whole | None = None
    score: str | None = None


class Pack(Observed):
    """How the context is assembled."""

    dedupe_by: str | None = None
    parent_expansion: bool | None = None
    order: str | None = None
    token_budget: Whole | None = None
    on_overflow: str | None = None
    max_per_source: Whole | None = None


class Generator(Observed):
    """The model that writes the answer."""

    model: str | None = None
    context_window: Whole | None = None
    max_tokens: Whole | None = None
    synthesis: str | None = None


class Pipeline(Observed):
    """`[pipeline]`. An absent table and an empty one mean the same: nothing was said."""

    arms: tuple[str, ...] | None = None
    k_final: Whole | None = None
    embedding: Embedding = Field(default_factory=Embedding)
    metric: Metric = Field(default_factory=Metric)
    search: dict[str, Search] = Field(default_factory=dict)
    parser: dict[str, Any] = Field(default_factory=dict)
    chunker: dict[str, Any] = Field(default_factory=dict)
    filter: Filter = Field(default_factory=Filter)
    fusion: Fusion = Field(default_factory=Fusion)
    thresholds: tuple[Threshold, ...] = ()
    rerank: Rerank = Field(default_factory=Rerank)
    pack: Pack = Field(default_factory=Pack)
    generator: Generator = Field(default_factory=Generator)

    @model_validator(mode="before")
    @classmethod
    def _kept(cls, given: Any) -> Any:
        """A null says nothing, and a plain value beside the arms' tables of `search` is a key of its own, kept."""
        if not isinstance(given, Mapping):
            return given
        said = {key: value for key, value in given.items() if value is not None}
        search = said.get("search")
        if isinstance(search, Mapping):
            tables = {arm: value for arm, value in search.items() if isinstance(value, Mapping | Search)}
            said["search"] = tables
            said |= {f"search.{key}": value for key, value in search.items() if key not in tables and value is not None}
        return said

    @property
    def floors_known(self) -> bool:
        """The thresholds were written down, if only as `thresholds = []`: there are no others."""
        return "thresholds" in self.model_fields_set

    def with_overrides(self, overrides: Mapping[str, Any] | None) -> "Pipeline":
        """This configuration with one query's departures (`Trace.config`) laid over it, table by table.

        The departures are a configuration themselves: the reader of the trace sets aside a line where they are not.
        """
        if not overrides:
            return self
        return Pipeline.model_validate(_merged(self.model_dump(by_alias=True, exclude_unset=True), overrides))


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    out = dict(base)
    for key, value in over.items():
        old = out.get(key)
        out[key] = _merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return out
