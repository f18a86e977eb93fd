"""The line that is typed into: history, several lines, colours, completion, and a line below that says what goes on."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.styles import Style

from headwater.cli.shell.complete import SqlCompleter
from headwater.cli.shell.input_text import SqlLexer, is_complete
from headwater.install.home import headwater_home
from headwater.options.secrets import is_secret

if TYPE_CHECKING:
    from headwater.cli.shell.shell import Shell

__all__ = ["read_and_execute"]

_REPORT_SECONDS = 0.2
_PROMPT, _MORE = "headwater> ", "        -> "
_STYLE = Style.from_dict(
    {
        "keyword": "bold ansicyan",
        "string": "ansigreen",
        "number": "ansimagenta",
        "comment": "italic ansibrightblack",
        "name": "ansiyellow",
        "bottom-toolbar": "noreverse ansibrightblack",
    }
)
_KEY = re.compile(r"'([^'\n]+)'\s*=")


class _History(FileHistory):
    """Kept from one shell to the next, but for statements with a password."""

    def store_string(self, string: str) -> None:
        if not any(is_secret(key) for key in _KEY.findall(string)):
            super().store_string(string)


def read_and_execute(shell: Shell, connection: Mapping[str, str]) -> None:
    """Until Ctrl-D or \\q."""
    prompt = _opened(shell, connection)
    while not shell.ended:
        shell.report()
        try:
            with patch_stdout(raw=True):  # rows of 'print' tables, and what is reported, appear above the line
                text = prompt.prompt(_PROMPT, pre_run=lambda: _report_while_typing(shell))
        except KeyboardInterrupt:  # forget what is typed
            continue
        except EOFError:
            return
        if text.strip():
            shell.execute(text)


def _report_while_typing(shell: Shell) -> None:
    async def report() -> None:
        while True:
            await asyncio.sleep(_REPORT_SECONDS)
            shell.report()

    get_app().create_background_task(report())  # which ends with the line


def _opened(shell: Shell, connection: Mapping[str, str]) -> PromptSession[str]:
    return PromptSession(
        history=_History(_history_file()),
        lexer=SqlLexer(),
        completer=SqlCompleter(shell.session.catalog, connection),
        complete_while_typing=False,
        complete_in_thread=True,  # topics are asked for over the network
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation=_MORE,
        bottom_toolbar=lambda: f" {shell.state} · {_keys(get_app().current_buffer.text)}",
        refresh_interval=0.5,
        style=_STYLE,
        include_default_pygments_style=False,
    )


def _keys(typed: str) -> str:
    """Ctrl-D quits on an empty line only, and within a statement the commands of the shell are a part of it."""
    return "\\? help · Ctrl-D quits" if "\n" not in typed else "the statement ends with ';' · Ctrl-C forgets it"


def _history_file() -> str:
    path = Path(os.environ.get("HEADWATER_HISTORY") or headwater_home() / "sql_history")
    path.parent.mkdir(parents=True, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # which only its owner may read
    return str(path)
