"""What a call costs, from the price table inside LiteLLM's package, which is read as a file: nothing is imported."""

import importlib.util
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragaudit.judge.redact import without_credentials

_TABLE = "model_prices_and_context_window_backup.json"
_OPENAI_LIKE = (
    "openai",
    "custom_openai",
    "text-completion-openai",
    "hosted_vllm",
    "litellm_proxy",
    "lm_studio",
    "ollama",
)
_LONG_PROMPT = 128_000
"""Tokens from which some models cost more; where one does, no price is given beyond it."""


@dataclass(frozen=True)
class Price:
    """US dollars a token."""

    input: float
    output: float
    dearer_when_long: bool = False

    def of(self, input_tokens: int, output_tokens: int) -> float | None:
        """The cost of a call; None when the table's plain price does not hold for one this long."""
        if self.dearer_when_long and input_tokens > _LONG_PROMPT:
            return None
        return input_tokens * self.input + output_tokens * self.output


def price_of(model: str, api_base: str | None = None, table: Mapping[str, Any] | None = None) -> Price | None:
    """The list price of a model, or None when it is not known. A price is never guessed.

    A model behind an address of one's own has the price of whoever runs it, whatever it is called: None.

    Args:
        model: As LiteLLM names it, `provider/name` or a name that it knows.
        api_base: The endpoint, when it is not the provider's own.
        table: Prices by name; default: those that the installed LiteLLM brings.
    """
    provider, _, name = model.rpartition("/")
    if api_base and (is_local(api_base) or provider in ("", *_OPENAI_LIKE)):
        return None
    prices = _installed_table() if table is None else table
    entry = prices.get(model)
    if entry is None and provider and prices.get(name, {}).get("litellm_provider") == provider:
        entry = prices[name]
    if not isinstance(entry, Mapping):
        return None
    each = (entry.get("input_cost_per_token"), entry.get("output_cost_per_token"))
    if not all(isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 for value in each):
        return None
    is_dearer = any(key.startswith("input_cost_per_token_above_") and value for key, value in entry.items())
    return Price(float(each[0] or 0), float(each[1] or 0), is_dearer)


def is_local(api_base: str) -> bool:
    """Whether an address is on this machine or in a private network."""
    host = urlsplit(without_credentials(api_base)).hostname or ""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host


@lru_cache(maxsize=1)
def _installed_table() -> Mapping[str, Any]:
    spec = importlib.util.find_spec("litellm")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        file = Path(folder) / _TABLE
        if file.is_file():
            table: Mapping[str, Any] = json.loads(file.read_bytes())
            return table
    return {}
