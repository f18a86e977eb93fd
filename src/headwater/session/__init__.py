"""The public API: a session takes SQL text to jobs. Its rooms are one file for each thing that a statement may ask for:
definitions, CREATE TABLE … AS, functions of users, SHOW, jobs; and the checks before anything starts."""

from headwater.session.session import Result, Results, Session, connect

__all__ = ["Result", "Results", "Session", "connect"]
