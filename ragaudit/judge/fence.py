"""How outside text is handed to a model: between marks it cannot contain, with nothing hidden and no role in it."""

import hashlib
import re
from collections.abc import Iterable

_CUT = 8
_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # direction marks, no shape
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"  # tags among them: hidden ASCII
    "\ud800-\udfff"  # half surrogates: no encoding can write them
    "]+"
    # One selector chooses the shape of a character; a row of them carries hidden bytes.
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}"
)
_MARKS = b"<>[:"
_INERT = (bytes(range(32, 127)) + b"\t\n").translate(None, _MARKS)
"""What most texts are made of: it hides nothing and marks no role."""
_ROLE_MARKS = re.compile(
    r"<(?=[|\uff5c])|(?<=[|\uff5c])>"  # <|im_start|> and its like, also with full-width bars
    r"|[<\[](?=/?(?:INST|SYS|s|bos|eos|pad|unk|system|user|assistant|(?:start|end)_of_[a-z]+)[>\]])"
    r"|<(?=</?SYS>>)",
    re.IGNORECASE,
)
_ROLE_LINES = re.compile(
    r"^([^\w\n]{0,8}(?:system|assistant|user|human|developer|tool|ai)\b[^\w\n:]{0,4})(?<! )(?=:)",
    re.IGNORECASE | re.MULTILINE,
)
_ROLE_WORDS = ("system", "assistant", "user", "human", "developer", "tool", "ai")


def key_for(texts: Iterable[str]) -> str:
    """A word that stands in none of the texts, and is the same for the same texts: marks made of it cannot be closed.

    It is cut from a hash of all of them, so that whoever writes one text cannot know it.
    """
    kept = list(texts)
    raws = [text.encode("utf-8", "surrogatepass") for text in kept]
    whole = b"".join([b"%d:%b" % (len(raw), raw) for raw in raws])
    digest = hashlib.sha256(whole)
    while True:
        key = digest.hexdigest()[:_CUT]
        # Where it is in the whole, which is hardly ever, it may still stand in none of them but across two.
        if key.encode() not in whole or not any(key in text for text in kept):
            return key
        digest.update(b"again")


def fenced(name: str, text: str, key: str) -> str:
    """The text between its marks. `text` has gone through `shown`."""
    return f"<{name}:{key}>\n{text}\n</{name}:{key}>"


def shown(text: str) -> str:
    """The text with hidden characters made visible and everything that a chat template reads as a role taken apart."""
    odd = text.encode("utf-8", "surrogatepass").translate(None, _INERT)
    if not odd:
        return text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if odd.translate(None, _MARKS):
        text = _HIDDEN.sub(_code, text)
    if "<" in text or "[" in text or ">" in text:
        text = _ROLE_MARKS.sub(lambda found: found[0] + " " if found[0] != ">" else " >", text)
    if ":" in text:
        low = text.lower()
        if any(word in low for word in _ROLE_WORDS):
            text = _ROLE_LINES.sub(r"\1 ", text)
    return text


def one_line(text: str) -> str:
    """The same on one line, for a row of a list."""
    return " ".join(shown(text).split())


def _code(found: re.Match[str]) -> str:
    run = found[0]
    if run in ("\u2028", "\u2029", "\x0b", "\x0c", "\x85"):
        return "\n"
    times = f" x{len(run)}" if len(run) > 1 else ""
    return f"<U+{ord(run[0]):04X}{times}>"
