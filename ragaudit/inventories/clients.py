"""The libraries of other people: imported when used, silent, and with their errors made ours and scrubbed."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from ragaudit.errors import ConfigError, InputError, MissingExtraError
from ragaudit.inventories.records import Where
from ragaudit.inventories.secrets import public

_ANY = (ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError, ValueError)
_MOST = 400


def client(module: str, extra: str) -> Any:
    """A client library.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise MissingExtraError(
                f"{name}: cannot be imported ({error}). Run: pip install --upgrade 'ragaudit[{extra}]'."
            ) from None
        raise MissingExtraError(f"{name} is not installed. Run: pip install 'ragaudit[{extra}]'.") from None


@contextmanager
def calls(where: Where, *faults: type[Exception], hint: str = "Check the address and the key.") -> Iterator[None]:
    """Around calls of a client: whatever it raises becomes one line without secrets.

    Args:
        where: The store.
        faults: The client's own errors, beside Python's.
        hint: What to do about it.

    Raises:
        InputError: The client failed.
    """
    expected: tuple[type[Exception], ...] = (*_ANY, *faults)
    try:
        yield
    except expected as error:
        said = where.secrets.clean(" ".join(str(error).split()) or type(error).__name__)
        place = where.secrets.clean(where.place if not where.is_url else public(where.place))
        raise InputError(f"{place}: {said[:_MOST].rstrip('.')}. {hint}") from None


@contextmanager
def hushed() -> Iterator[None]:
    """No log line and no warning of a client on the terminal: they may hold addresses with passwords."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def chosen(where: Where, names: list[str], noun: str = "collection") -> str:
    """The collection that was asked for, or the only one there is.

    Raises:
        ConfigError: It is not there, or there are several and none was named.
    """
    place = where.secrets.clean(public(where.place) if where.is_url else where.place)
    listed = ", ".join(sorted(names)[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
    if where.collection is not None:
        if where.collection not in names:
            raise ConfigError(f"{place}: no {noun} {where.collection!r}. There is: {listed or 'none'}.")
        return where.collection
    if len(names) != 1:
        raise ConfigError(f"{place}: holds {len(names)} {noun}s ({listed or 'none'}). Name one with --collection.")
    return names[0]
