"""The bot under test: a handbook of six passages, a search by shared words, and an answer quoted from the best one."""

import re

PASSAGES = {
    "leave": "Every employee has 28 days of paid leave a year. Unused days expire at the end of March.",
    "remote": "Two days a week may be worked from home. The team lead agrees the days in writing.",
    "travel": "Train journeys under five hours are booked in second class. Flights need approval by the director.",
    "laptop": "Laptops are replaced every four years. A broken laptop is replaced within two working days.",
    "sick": "Sick leave is reported before nine in the morning. A certificate is needed from the third day on.",
    "expenses": "Expenses are paid back within ten days. Receipts over 50 euros must be attached.",
}
NO_ANSWER = "The handbook does not say."


def search(question: str, k: int = 2) -> list[str]:
    """Ids of the passages that share the most words with the question."""
    wanted = _words(question)
    shared = {name: len(wanted & _words(text)) for name, text in PASSAGES.items()}
    found = [name for name in sorted(shared, key=lambda name: -shared[name]) if shared[name]]
    return found[:k]


def answer(question: str, context: list[str]) -> str:
    """The sentence of the context that shares the most words with the question."""
    sentences = [part for name in context for part in re.findall(r"[^.]+\.", PASSAGES[name])]
    best = max(sentences, key=lambda part: len(_words(question) & _words(part)), default=NO_ANSWER)
    return best.strip()


def _words(text: str) -> set[str]:
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 3}
