"""How a result displays itself in a notebook: changing in place while its query runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from headwater.options.secrets import hidden_in

if TYPE_CHECKING:
    from headwater.results.query import QueryResult

__all__ = ["display"]

_EVERY = 0.5
_NAME = "headwater-display"


class _Html(Protocol):
    def _repr_html_(self) -> str: ...


def display(shown: _Html, query: QueryResult | None) -> None:
    """Only IPython calls this. A query that ends is waited for; interrupting the kernel stops it. Any other is brought
    up to date by a thread, so that other cells can be run: one of them may call stop()."""
    from IPython import display as ipython

    picture = shown._repr_html_()
    if not picture and query is None:
        return
    handle = ipython.display(ipython.HTML(picture), display_id=True)
    if query is None:
        return
    follow = partial(_follow, handle, shown, query, ipython.HTML)
    # In a thread: a cell that does not end would block all cells behind it.
    if not query.bounded:
        threading.Thread(target=_in_background, args=(follow, handle, ipython.HTML), name=_NAME, daemon=True).start()
        return
    try:
        follow()
    except KeyboardInterrupt:
        query.stop()
        handle.update(ipython.HTML(shown._repr_html_()))


def _in_background(follow: Callable[[], None], handle: Any, html: Any) -> None:
    """Nobody would catch an error here: it is shown instead of the rows."""
    try:
        follow()
    except Exception as error:  # noqa: BLE001 - of whatever kind, a person has to see it
        handle.update(html(f"<pre>{escape(hidden_in(str(error), {}))}</pre>"))


def _follow(handle: Any, shown: _Html, query: QueryResult, html: Any) -> None:
    """Until the query has ended; raises its error."""
    before = ""
    while True:
        ended = query.wait(_EVERY)
        picture = shown._repr_html_()
        if picture != before:
            handle.update(html(picture))
            before = picture
        if ended:
            return
