"""From what a person typed to the exact arguments a container gets, and back (pure).

Called by forms (one command line), by manifests (escaping for Kubernetes) and by pages (what they show is what runs).
"""

import shlex

from jobs.state import CommandMode

SHELL = ("/bin/sh", "-c")
MAX_SCRIPT_BYTES = 64 * 1024  # one argument; Linux refuses arguments above 128 KiB


class CommandError(ValueError):
    """A command line that cannot be split, with the reason in words."""


def split_command(line: str) -> list[str]:
    """Arguments of a command line by the quoting rules of a POSIX shell, without any expansion.

    Raises CommandError for a quote that is never closed or a backslash at the end.
    """
    try:
        return shlex.split(line, comments=False, posix=True)
    except ValueError as error:
        words = {
            "No closing quotation": "A quote is opened and never closed.",
            "No escaped character": "The command ends with a backslash that escapes nothing.",
        }
        raise CommandError(words.get(str(error), str(error))) from error


def join_command(argv: list[str] | tuple[str, ...]) -> str:
    """The command line that `split_command` turns back into `argv`."""
    return shlex.join(argv)


def container_argv(mode: CommandMode, argv: tuple[str, ...], script: str) -> tuple[str, ...]:
    """What the container's process is started with."""
    return (*SHELL, script) if mode is CommandMode.SCRIPT else argv


def escape_dollars(text: str) -> str:
    """Double every `$`, so that Kubernetes hands the text on unchanged.

    The kubelet replaces `$(NAME)` and turns `$$` into `$` in command, args and env values (Kubernetes documentation,
    "Define a Command and Arguments for a Container"); a doubled `$` always comes out as one.
    """
    return text.replace("$", "$$")
