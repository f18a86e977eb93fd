"""Scripts with legacy connector options rewritten to current ones, and the proof that they still mean the same.

1. Every statement takes effect in a session of its own kind of script: there the catalog knows what each table says.
2. The options of its WITH clause and of its hints are replaced where they stand.
3. The new script is planned in another session. Tables and plans of the two must be equal, or nothing is handed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headwater.catalog.catalog import Catalog
from headwater.catalog.tables import Table
from headwater.errors import HeadwaterError
from headwater.options.spelling import Spelling
from headwater.options.translate import spelling_of
from headwater.plan.explain import explain
from headwater.plan.nodes import Scan, Write, walk
from headwater.session.definitions import Definitions
from headwater.sql.option_edits import Edit, OptionGroup, edited, group_edit, option_groups
from headwater.sql.parser import parse_script, parse_with_tokens
from headwater.sql.script import Script
from headwater.sql.statements import CreateTable, Statement

__all__ = ["Modernized", "Modernizer", "Rewritten"]


@dataclass(frozen=True)
class Rewritten:
    """One WITH clause or hint: whose options, in which line, how many, and which of them have no replacement."""

    table: str
    line: int
    options: int
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class Modernized:
    """`text` is the new script, `plans` how many plans have been compared."""

    text: str
    rewritten: tuple[Rewritten, ...]
    plans: int


@dataclass
class Modernizer:
    """Scripts of one session, in their order."""

    variables: Mapping[str, str] = field(default_factory=dict)
    before: Definitions = field(default_factory=Definitions)
    after: Definitions = field(default_factory=Definitions)

    def modernize(self, text: str, name: str = "") -> Modernized:
        script = Script(text, name, self.variables)
        plans: list[Write] = []
        edits: list[Edit] = []
        rewritten: list[Rewritten] = []
        for statement, tokens in parse_with_tokens(script):
            plans += [job.plan for job in self.before.apply(statement)]  # 1
            for group in option_groups(tokens):
                spelling = self._spelling(statement, group)
                if not spelling.is_current:
                    edits.append(group_edit(script, group, spelling.parts))  # 2
                    rewritten.append(_rewritten(script, statement, group, spelling))
        new = edited(text, edits)
        # Planned from scratch in another session: comparing edits would only prove that the rewriting agrees with
        # itself.
        statements = parse_script(new, name, self.variables)
        self._prove(plans, [job.plan for statement in statements for job in self.after.apply(statement)])  # 3
        return Modernized(new, tuple(rewritten), len(plans))

    def _spelling(self, statement: Statement, group: OptionGroup) -> Spelling:
        """What the options mean where they stand: with those of the table they are added to."""
        name = statement.name if isinstance(statement, CreateTable) else group.hinted
        table = self.before.catalog.get(name)
        if not isinstance(table, Table):
            return spelling_of(group.options)
        return spelling_of({**table.spelling.written, **group.options})

    def _prove(self, before: list[Write], after: list[Write]) -> None:
        same = len(before) == len(after) and all(map(_same_plan, before, after))
        if not same or _described(self.before.catalog) != _described(self.after.catalog):
            raise HeadwaterError(
                "The rewritten script would not do the same, so it is not shown.",
                detail="Its tables or plans differ from those of the script as it is.",
                hint="This is a bug in Headwater. The script runs as it is.",
            )


def _rewritten(script: Script, statement: Statement, group: OptionGroup, spelling: Spelling) -> Rewritten:
    name = statement.name if isinstance(statement, CreateTable) else group.hinted
    dropped = tuple(key for key in group.options if not _stands(spelling, key))
    return Rewritten(name, script.position(group.opening).line, len(group.pairs), dropped)


def _stands(spelling: Spelling, key: str) -> bool:
    """Whether a current option replaces the legacy one. The word 'custom' is replaced by the name of its class."""
    return bool(spelling.parts[key]) or spelling.name("sink.partitioner").startswith(key)


def _same_plan(before: Write, after: Write) -> bool:
    if explain(before) != explain(after):
        return False
    nodes = [[node.table for node in walk(plan) if isinstance(node, Scan | Write)] for plan in (before, after)]
    return [_facts(table) for table in nodes[0]] == [_facts(table) for table in nodes[1]]


def _described(catalog: Catalog) -> list[object]:
    return [_facts(table) for table in catalog.tables()]


def _facts(table: Table) -> object:
    """Everything about a table but where it was written."""
    return (table.name, table.columns, table.primary_key, table.watermark, table.connector.identifier, table.options)
