"""Live capture: records the journey of each query inside a running application. Imports nothing heavy, never raises."""

from ragaudit.record.query import Query, current
from ragaudit.record.recorder import Recorder, Stats

__all__ = ["Query", "Recorder", "Stats", "current"]
