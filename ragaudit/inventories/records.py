"""What every store is read as: rows with their arms, pages of rows, and what the store says of itself."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from ragaudit.inventories.secrets import Secrets

URL_VARIABLE = "RAGAUDIT_STORE_URL"
KEY_VARIABLE = "RAGAUDIT_STORE_KEY"


@dataclass(frozen=True, slots=True)
class Held:
    """One row in one arm's index. The vector itself is never kept."""

    dim: int | None = None
    norm: float | None = None
    """Euclidean length, >= 0; None = the vector was not read, or the row holds several."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row, as the store gives it."""

    key: str
    """The store's own id."""
    payload: Mapping[str, Any]
    """What stands beside text and vector, in the shape that its writer gave it."""
    text: str | None = None
    """None = the store has no field for texts; then it is looked for in the payload."""
    arms: Mapping[str, Held | None] = field(default_factory=dict)
    """Arm -> the row's place in its index; None = the row is not in it. An arm that is not named was not looked at."""
    namespace: str | None = None
    own_id: str | None = None
    """The user's or the framework's id, where the store keeps it apart from its own."""


@dataclass(frozen=True)
class Page:
    """Some rows of a store."""

    records: Sequence[Record]
    after: Any
    """Where to go on after them, a JSON value that means something to this store only; None = these were the last."""


@dataclass(frozen=True)
class Contents:
    """What a store says of itself, before the first page and after the last."""

    collection: str
    rows: int | None
    """How many rows there are, exactly; None = the store cannot say."""
    arms: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Arm -> what index.json says of it, as far as the store knows: `metric`, `ann`, `score`..."""
    embedding_model: str | None = None
    """The model of rows that name none themselves."""
    revision: str | None = None
    mark: str | None = None
    """Differs whenever rows were written in between; None = the store has no such thing."""
    is_snapshot: bool = False
    """All pages of this reader see the same state, whatever is written meanwhile."""
    restricted: tuple[str, ...] = ()
    """Why this user may not see every row."""
    is_declared_complete: bool | None = None
    """What a file says of itself; None for a live store."""
    notes: tuple[str, ...] = ()


class Reader(Protocol):
    """A store that is open for reading."""

    @property
    def resumes(self) -> bool:
        """Whether `pages` can go on after a page of an earlier reader."""

    def contents(self) -> Contents:
        """What there is now."""

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """Every row once, in the same order each time. `after` = None for the start, else a page's `after`."""


@dataclass(frozen=True)
class Where:
    """Which store, and how to read it."""

    place: str
    """A path or a URL."""
    is_url: bool
    collection: str | None = None
    key: str | None = None
    """API key or token, from the environment."""
    with_vectors: bool = True
    arms: Mapping[str, str] = field(default_factory=dict)
    """The store's name of an index -> the arm's name in the traces."""
    is_trusted: bool = False
    """The user says that a folder is their own, where its client unpickles what is in it."""
    id_field: str | None = None
    """The field of the user's id, where it may be one of the store's own columns."""
    secrets: Secrets = field(default_factory=Secrets)

    def arm(self, name: str) -> str:
        """The arm that an index of the store serves."""
        return self.arms.get(name, name)


@dataclass(frozen=True)
class Store:
    """One kind of store."""

    name: str
    title: str
    place: str
    """What its PATH or URL is, for people."""
    open: Callable[[Where], AbstractContextManager[Reader]]


def measured(vector: Any) -> Held | None:
    """Dimension and length of a vector; None for none. Of several vectors a row, only the dimension."""
    if vector is None:
        return None
    values = vector.tolist() if hasattr(vector, "tolist") else list(vector)
    if values and isinstance(values[0], list):
        return Held(dim=len(values[0]))
    return Held(dim=len(values), norm=round(math.hypot(*values), 6))


def higher(formula: str) -> dict[str, str]:
    """The score of an arm whose best hit has the highest."""
    return {"direction": "higher", "formula": formula}


def lower(formula: str) -> dict[str, str]:
    """The score of an arm whose best hit has the lowest: a distance."""
    return {"direction": "lower", "formula": formula}
