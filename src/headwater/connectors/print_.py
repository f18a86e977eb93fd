"""`print`: shows every change, one line each, as `+I[…]`, `-U[…]`, `+U[…]` or `-D[…]`."""

from __future__ import annotations

from headwater.connectors.base import CONNECTOR, Accepts, Connector
from headwater.options.base import Option
from headwater.options.types import BOOL, INT, STRING

__all__ = ["PRINT"]


class PrintConnector(Connector):
    identifier = "print"
    summary = "Shows every change on the standard output."
    options = (
        CONNECTOR,
        Option("print-identifier", STRING, "Text in front of every line: '<text>> +I[…]'."),
        Option("standard-error", BOOL, "Whether lines go to the standard error instead of the standard output.", False),
        Option("sink.parallelism", INT, "Number of tasks that write. Lines then start with the number of their task."),
    )
    accepts = Accepts.ALL


PRINT = PrintConnector()
