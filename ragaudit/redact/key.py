"""The secret key that makes pseudonyms: from a file that the user keeps, or fresh and forgotten."""

import secrets
from pathlib import Path

from ragaudit.errors import ConfigError
from ragaudit.redact.pseudonyms import MIN_KEY


def key_from(path: Path) -> bytes:
    """The key in a file, without white space around it.

    Raises:
        ConfigError: The file cannot be read, or holds fewer than `MIN_KEY` bytes.
    """
    try:
        key = path.read_bytes().strip()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check --key-file.") from None
    if len(key) < MIN_KEY:
        raise ConfigError(
            f"{path}: holds {len(key)} bytes, and a key has at least {MIN_KEY}. Make one:"
            ' python -c "import secrets; print(secrets.token_hex(32))"'
        )
    return key


def fresh_key() -> bytes:
    """32 random bytes."""
    return secrets.token_bytes(32)
