"""Copies text where a program for it is at hand, else asks the terminal to; and says which."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping

PROGRAMS: tuple[tuple[str, ...], ...] = (
    ("pbcopy",),
    ("wl-copy",),
    ("xclip", "-selection", "clipboard"),
    ("clip.exe",),
)
SECONDS = 2.0


def copy(text: str, by_terminal: Callable[[str], None], env: Mapping[str, str] = os.environ) -> str:
    """Copy, and say how: `with xclip`, or `through the terminal (OSC 52)`.

    Args:
        text: What to copy.
        by_terminal: Sends the text to the terminal, which gives no answer.
        env: Tells a session over ssh, where a local program would copy to the wrong machine, and which displays exist.
    """
    if not env.get("SSH_TTY") and not env.get("SSH_CONNECTION"):
        for program in PROGRAMS:
            if _usable(program[0], env) and _ran(program, text):
                return f"with {program[0]}"
    by_terminal(text)
    return "through the terminal (OSC 52), which gives no answer; e writes a file"


def _usable(name: str, env: Mapping[str, str]) -> bool:
    needs = {"wl-copy": "WAYLAND_DISPLAY", "xclip": "DISPLAY"}.get(name)
    if name == "pbcopy" and sys.platform != "darwin":
        return False
    return (needs is None or bool(env.get(needs))) and shutil.which(name) is not None


def _ran(program: tuple[str, ...], text: str) -> bool:
    try:
        done = subprocess.run(
            program, input=text.encode("utf-8", "replace"), capture_output=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
