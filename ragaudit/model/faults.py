"""What pydantic found wrong with a value, in the words of someone who wrote a log or a configuration."""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""Keys and places in lists, from the outside in."""


class Fault(NamedTuple):
    """The first thing wrong: where, what should stand there ("a whole number"), and what does. "" = it is missing."""

    path: Path
    wanted: str
    found: Any


def first_fault(error: ValidationError, walkable: Callable[[Path], Path] = lambda path: path) -> Fault:
    """The first thing wrong; where a value may have one of several forms, all of them are named.

    Args:
        error: What pydantic raised.
        walkable: Cuts a location to the part that names keys: pydantic appends the branch of a union.
    """
    errors = error.errors(include_url=False)
    first = errors[0]
    if first["type"] == "missing":
        return Fault((*walkable(first["loc"][:-1]), first["loc"][-1]), "", None)
    path = walkable(first["loc"])
    forms = dict.fromkeys(_form(one) for one in errors if walkable(one["loc"]) == path)
    if "a number" in forms:
        forms.pop("a whole number", None)
    return Fault(path, ", or ".join(forms), first["input"])


_FORMS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "greater_than_equal": "{ge:g} or more",
    "greater_than": "more than {gt:g}",
    "less_than_equal": "{le:g} or less",
    "less_than": "less than {lt:g}",
}


def _form(error: ErrorDetails) -> str:
    known = _FORMS.get(error["type"])
    if known is None:
        return error["msg"].removeprefix("Input should be ")
    return known.format(**error.get("ctx", {}))
