"""Options: declared once, read from text, explained in errors, `headwater options` and the documentation."""

from headwater.options.base import Option, OptionType
from headwater.options.parsing import parse_options, read_options
from headwater.options.problems import Problem, problems_error
from headwater.options.resolved import ResolvedOptions
from headwater.options.secrets import is_secret, masked

__all__ = [
    "Option",
    "OptionType",
    "Problem",
    "ResolvedOptions",
    "is_secret",
    "masked",
    "parse_options",
    "problems_error",
    "read_options",
]
