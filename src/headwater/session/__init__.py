"""The public API: a session turns SQL text into jobs. There is one file for each thing that a statement may ask for
(definitions, CREATE TABLE … AS, user functions, SHOW, jobs), and one for each check before anything starts."""

from headwater.session.session import Result, Results, Session, connect

__all__ = ["Result", "Results", "Session", "connect"]
