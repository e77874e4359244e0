"""Finds in the text of a prompt which chunks were packed into it, and in which order."""

from ragaudit.model.texts import packed as packed
