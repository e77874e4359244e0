"""The errors that a caller may want to tell apart. A message reads `place: problem. What to do.`"""


class RagauditError(Exception):
    """Root of every error that ragaudit raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 3


class ConfigError(RagauditError):
    """An option or a setting is wrong or missing; nothing was read or written."""

    exit_code = 2


class InputError(RagauditError):
    """A file cannot be read, is inconsistent, or holds nothing usable."""

    exit_code = 3


class AuditFileError(RagauditError):
    """An audit file is missing, damaged, or of another version."""

    exit_code = 3


class MissingExtraError(ConfigError):
    """A format needs an optional package that is not installed."""


class JudgeError(RagauditError):
    """The judge failed, its budget was spent, or a recorded reply is missing."""

    exit_code = 4


class TapeMissError(JudgeError):
    """No recorded reply for a request, and recording is not allowed."""
