"""Small scripts in Flink's spelling: those that must be taken as they are, and those that must be refused with a
message that says what to do."""

from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError, ScriptErrors, SqlError, ValidationError
from headwater.session import Session

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'k:9092', 'scan.startup.mode' = 'earliest-offset'"
ORDERS = f"""
CREATE TABLE orders (
  id BIGINT, who STRING, price DECIMAL(10, 2), quantity INT, at TIMESTAMP(3), proctime AS PROCTIME(),
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) WITH ({KAFKA}, 'topic' = 'orders', 'format' = 'json');
CREATE TABLE totals (who STRING, total DECIMAL(38, 2), PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = 'k:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE lines (line STRING) WITH ({KAFKA}, 'topic' = 'lines', 'format' = 'raw');
"""


def initials(name: str) -> str:
    return "".join(word[0] for word in name.split())


TAKEN = {
    # statements
    "missing last semicolon": "INSERT INTO lines SELECT who FROM orders",
    "statements on one line": "SHOW TABLES; SHOW VIEWS; DESCRIBE orders; DESC lines",
    "slash comments": "// a comment\nINSERT INTO lines SELECT who // another\nFROM orders;",
    "empty statements": ";;SHOW TABLES;;",
    "or replace table": f"CREATE OR REPLACE TABLE lines (l STRING) WITH ({KAFKA}, 'topic' = 'l', 'format' = 'raw');",
    "or replace view": "CREATE OR REPLACE VIEW v AS SELECT 1; CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 2 AS b;",
    "create table as": f"CREATE TABLE big WITH ({KAFKA}, 'topic' = 'big', 'format' = 'json') AS "
    "SELECT id, who FROM orders WHERE price > 100;",
    "create table as, with columns": f"CREATE TABLE c (note STRING, id DECIMAL(20, 0), twice AS id * 2) WITH ({KAFKA}, "
    "'topic' = 'c', 'format' = 'json') AS SELECT id, price FROM orders;",
    "create table as, in another order": f"CREATE TABLE c (price, id) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json') "
    "AS SELECT id, price FROM orders;",
    "create table as, with a key": """CREATE TABLE c (PRIMARY KEY (who) NOT ENFORCED) WITH (
        'connector' = 'upsert-kafka', 'topic' = 'c', 'properties.bootstrap.servers' = 'k:9092',
        'key.format' = 'raw', 'value.format' = 'json') AS
        SELECT COALESCE(who, '') AS who, COUNT(*) AS n FROM orders GROUP BY COALESCE(who, '');""",
    "alter table set": "ALTER TABLE orders SET ('scan.startup.mode' = 'latest-offset'); SHOW CREATE TABLE orders;",
    "alter table reset": "ALTER TABLE orders RESET ('scan.startup.mode');",
    "alter table rename": "ALTER TABLE orders RENAME TO o; INSERT INTO lines SELECT who FROM o;",
    "alter table if exists": "ALTER TABLE IF EXISTS nothing SET ('a' = 'b');",
    "alter view": "CREATE VIEW v AS SELECT id FROM orders; ALTER VIEW v AS SELECT who FROM orders; "
    "ALTER VIEW v RENAME TO w; INSERT INTO lines SELECT who FROM w;",
    "databases": "CREATE DATABASE IF NOT EXISTS sales COMMENT 'c'; USE sales; CREATE VIEW v AS SELECT 1 AS a; "
    "SHOW DATABASES; SHOW CURRENT DATABASE; SHOW TABLES; USE default_catalog.default_database; "
    "SHOW TABLES FROM sales; INSERT INTO lines SELECT CAST(a AS STRING) FROM sales.v; DROP DATABASE sales CASCADE;",
    "catalogs": "SHOW CATALOGS; SHOW CURRENT CATALOG; USE CATALOG default_catalog; SHOW DATABASES IN default_catalog;",
    "options of a database": "CREATE DATABASE d WITH ('owner' = 'me'); DROP DATABASE d;",
    "columns of three and four parts": "CREATE DATABASE d; CREATE TABLE d.t (a STRING) WITH ('connector' = 'datagen'); "
    "INSERT INTO lines SELECT d.t.a FROM d.t WHERE default_catalog.d.t.a > 'a'; "
    "INSERT INTO lines SELECT default_database.orders.who FROM orders JOIN d.t ON orders.who = d.t.a; "
    "CREATE DATABASE e; CREATE TABLE e.t (b STRING, a STRING) WITH ('connector' = 'datagen'); "
    "INSERT INTO lines SELECT e.t.a FROM d.t JOIN e.t ON d.t.a = e.t.b;",
    "names of three parts": "INSERT INTO default_catalog.default_database.lines "
    "SELECT orders.who FROM `default_catalog`.`default_database`.`orders`;",
    "a view of another database": "CREATE DATABASE d; CREATE VIEW v AS SELECT who FROM orders; USE d; "
    "INSERT INTO default_database.lines SELECT who FROM default_database.v;",
    "show": "SHOW FUNCTIONS; SHOW USER FUNCTIONS; SHOW JARS; SHOW JOBS; SHOW MODULES; "
    "SHOW COLUMNS FROM orders LIKE 'p%'; SHOW TABLES ILIKE 'O%'; SHOW FUNCTIONS NOT ILIKE 'a%';",
    "show create view": "CREATE VIEW v AS SELECT 1 AS a; SHOW CREATE VIEW v; DESCRIBE v; SHOW TABLES NOT LIKE 'v%';",
    "describe extended": "DESCRIBE EXTENDED orders;",
    "explain a query": "EXPLAIN SELECT who, SUM(price) FROM orders GROUP BY who;",
    "explain with details": "EXPLAIN ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN SELECT * FROM orders;",
    "explain plan for": "EXPLAIN PLAN FOR INSERT INTO lines SELECT who FROM orders;",
    "stop job with savepoint": "STOP JOB 'orders' WITH SAVEPOINT; SHOW JOBS;",
    "jars": "ADD JAR '/opt/flink/lib/flink-sql-connector-kafka.jar'; SHOW JARS; REMOVE JAR '/opt/x.jar';",
    "quit": "SHOW TABLES; QUIT; THIS IS NOT READ",
    "exit": "EXIT;",
    "reset": "SET 'pipeline.name' = 'a'; RESET 'pipeline.name'; RESET;",
    "unicode strings": "INSERT INTO lines SELECT U&'\\0041' || who FROM orders; "
    f"CREATE TABLE c (a STRING) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'csv', 'csv.field-delimiter' = U&'\\0001');",
    "statement set": "EXECUTE STATEMENT SET BEGIN INSERT INTO lines SELECT who FROM orders; "
    "INSERT INTO totals SELECT who, SUM(price) FROM orders GROUP BY who; END;",
    "a table as a query": "TABLE orders; INSERT INTO lines TABLE lines; SELECT * FROM (TABLE orders) AS o; "
    "TABLE lines UNION ALL TABLE lines;",
    "execute": "EXECUTE SELECT who FROM orders; EXECUTE INSERT INTO lines SELECT who FROM orders; EXECUTE VALUES (1);",
    "intervals of numbers": "SELECT at + INTERVAL 10 SECOND, at - INTERVAL -1 DAY, at + INTERVAL 2 WEEKS FROM orders; "
    "SELECT at + INTERVAL quantity DAY, at + INTERVAL (quantity + 1) HOUR, at - INTERVAL orders.id DAY FROM orders;",
    "a column named interval": "SELECT `interval`, interval + 1 FROM (VALUES (1)) AS t (`interval`);",
    # settings
    "set without quotes": "SET execution.checkpointing.interval = 3min; SET table.local-time-zone=GMT+08:00;\n"
    "SET state.checkpoints.dir = file:///tmp/flink/checkpoints; SET parallelism.default = 4;",
    "set of the client": "SET 'sql-client.execution.result-mode' = 'tableau'; SET 'table.dml-sync' = 'true'; SET;",
    "set what is of Flink": "SET 'table.exec.mini-batch.enabled' = 'true'; SET 'taskmanager.numberOfTaskSlots' = '4'; "
    "SET 'scheduler-mode' = 'reactive'; SET execution.type = streaming; SET execution.result-mode = tableau;",
    "zones": "SET 'table.local-time-zone' = 'GMT+08:00'; SET table.local-time-zone = UTC+8; "
    "SET 'table.local-time-zone' = '+08:00'; SET 'table.local-time-zone' = 'Asia/Shanghai';",
    "not null enforcer": f"CREATE TABLE c (a STRING NOT NULL) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json');"
    "SET 'table.exec.sink.not-null-enforcer' = 'DROP'; EXPLAIN INSERT INTO c SELECT who FROM orders;",
    "type length enforcer": f"CREATE TABLE c (a CHAR(3)) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json');"
    "SET 'table.exec.sink.type-length-enforcer' = 'trim_pad'; INSERT INTO c SELECT who FROM orders;",
    "batch": "SET 'execution.runtime-mode' = 'batch'; INSERT INTO totals SELECT who, SUM(price) "
    "FROM orders /*+ OPTIONS('scan.bounded.mode' = 'latest-offset') */ GROUP BY who;",
    # options
    "numbered options of 1.9": """CREATE TABLE c (a INT) WITH (
        'connector.type' = 'kafka', 'connector.version' = '0.11', 'connector.topic' = 'c',
        'connector.properties.0.key' = 'bootstrap.servers', 'connector.properties.0.value' = 'k:9092',
        'connector.startup-mode' = 'specific-offsets', 'connector.specific-offsets.0.partition' = '0',
        'connector.specific-offsets.0.offset' = '42', 'format.type' = 'json', 'format.derive-schema' = 'true');""",
    "connectors of older brokers": "CREATE TABLE c (a INT) WITH ('connector' = 'kafka-0.11', 'topic' = 'c', "
    "'properties.bootstrap.servers' = 'k:9092', 'format' = 'json');",
    "options without effect": f"CREATE TABLE c (a INT) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json', "
    "'value.format' = 'csv', 'sink.transactional-id-prefix' = 'x', 'properties.key.deserializer' = 'y');",
    # implicit casts
    "numbers into a decimal": "INSERT INTO totals SELECT who, SUM(CAST(price AS DOUBLE)) FROM orders GROUP BY who;",
    "a narrower decimal": f"CREATE TABLE c (d DECIMAL(5, 1)) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json'); "
    "INSERT INTO c SELECT 0.908 * price FROM orders;",
    "a timestamp into a date": f"CREATE TABLE c (d DATE, t TIME) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json'); "
    "INSERT INTO c SELECT at, at FROM orders;",
    "a string in order with a number": "INSERT INTO lines SELECT who FROM orders WHERE who > 5 AND quantity < '10';",
    "groups spelled differently": "INSERT INTO totals SELECT UPPER(o.who), SUM(price) FROM orders o "
    "GROUP BY upper(`who`) HAVING Upper(who) > 'A';",
    "functions in Python": "CREATE FUNCTION initials AS 'test_flink_scripts.initials' LANGUAGE PYTHON; "
    "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'test_flink_scripts.initials' LANGUAGE PYTHON; "
    "INSERT INTO totals SELECT Initials(who), SUM(price) FROM orders GROUP BY INITIALS(who); SHOW USER FUNCTIONS; "
    "DROP FUNCTION initials; DROP TEMPORARY SYSTEM FUNCTION IF EXISTS f;",
    "statement set of 1.13": "BEGIN STATEMENT SET; INSERT INTO lines SELECT who FROM orders; END;",
}

REFUSED = {
    "a function in Java": ("CREATE FUNCTION f AS 'com.acme.F' LANGUAGE JAVA USING JAR '/x.jar'", "LANGUAGE PYTHON"),
    "a function without a language": ("CREATE TEMPORARY SYSTEM FUNCTION f AS 'com.acme.F'", "Add LANGUAGE PYTHON"),
    "alter function": ("ALTER FUNCTION f AS 'com.acme.F'", "ALTER FUNCTION is not supported"),
    "describe function": ("DESCRIBE FUNCTION upper", "DESCRIBE FUNCTION is not supported"),
    "show create database": ("SHOW CREATE DATABASE d", "SHOW CREATE DATABASE is not supported"),
    "materialized table": ("CREATE MATERIALIZED TABLE m AS SELECT 1", "CREATE MATERIALIZED is not supported"),
    "analyze": ("ANALYZE TABLE orders COMPUTE STATISTICS", "ANALYZE is not supported"),
    "unload module": ("UNLOAD MODULE core", "SHOW FUNCTIONS lists them"),
    "load module": ("LOAD MODULE hive", "SHOW FUNCTIONS lists them"),
    "use modules": ("USE MODULES hive, core", "SHOW FUNCTIONS lists them"),
    "create catalog": ("CREATE CATALOG c WITH ('type' = 'jdbc')", "There is one catalog"),
    "use another catalog": ("USE CATALOG hive", "There is one catalog"),
    "another catalog": ("SELECT * FROM hive.db.t", "Unknown catalog 'hive'"),
    "another database": ("INSERT INTO lines SELECT a FROM nosuch.t", "There is no database 'nosuch'"),
    "dropping what is in use": ("CREATE DATABASE d; USE d; DROP DATABASE d", "'d' is the current database"),
    "dropping what is not empty": (
        "CREATE DATABASE d; CREATE VIEW d.v AS SELECT 1 AS a; DROP DATABASE d",
        "Write DROP DATABASE … CASCADE",
    ),
    "delete": ("DELETE FROM orders WHERE id = 1", "upsert-kafka"),
    "update": ("UPDATE orders SET id = 1", "upsert-kafka"),
    "add a column": ("ALTER TABLE orders ADD note STRING", "CREATE OR REPLACE TABLE orders"),
    "reset what is not set": ("ALTER TABLE orders RESET ('nosuch')", "has no option 'nosuch' to reset"),
    "set what is wrong": ("ALTER TABLE orders SET ('scan.startup.mode' = 'x')", "scan.startup.mode"),
    "create table as with other columns": (
        f"CREATE TABLE c (id, who) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json') AS SELECT id FROM orders",
        "are not those of its query",
    ),
    "view of nothing": ("CREATE VIEW v AS SELECT nosuch(id) FROM nowhere", "There is no table or view 'nowhere'"),
    "view of nothing known": ("CREATE VIEW v AS SELECT nosuch(id) FROM orders", "nosuch"),
    "stop job with drain": ("STOP JOB '1' WITH DRAIN", "WITH DRAIN is not supported"),
    "truncate": ("TRUNCATE TABLE orders", "retention"),
    "unknown setting": ("SET 'headwater.batch.maxrows' = '1'", "Did you mean 'headwater.batch.max-rows'?"),
    "setting that changes results": ("SET 'table.sql-dialect' = 'hive'", "Scripts are Flink SQL"),
    "batch of a table without end": (
        "SET 'execution.runtime-mode' = 'batch'; INSERT INTO lines SELECT who FROM orders",
        "Querying an unbounded table 'orders' in batch mode is not allowed.",
    ),
    "a string equal to a number": ("INSERT INTO lines SELECT who FROM orders WHERE who = 5", "cannot be compared"),
    "a double into a bigint": (
        f"CREATE TABLE c (a BIGINT) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json'); INSERT INTO c VALUES (1e0)",
        "Incompatible types for sink column 'a'",
    ),
    "call": ("CALL sys.compact('t')", "no procedures"),
    "databases of another catalog": ("SHOW DATABASES FROM hive", "There is one catalog, default_catalog."),
    "a table of another database": ("SELECT d.orders.who FROM orders", "'d' is neither a table in FROM nor a column"),
    "insert into table": ("INSERT INTO TABLE lines SELECT who FROM orders", "Leave TABLE out."),
    "distributed by": (
        f"CREATE TABLE c (a INT) DISTRIBUTED BY (a) INTO 4 BUCKETS WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json')",
        "Leave it out: the topic decides",
    ),
    "a legacy connector that does not exist": (
        "CREATE TABLE c (a INT) WITH ('connector.type' = 'jdbc', 'connector.url' = 'x', 'connector.table' = 't')",
        "Table 'c' is not valid: 1 problem.",
    ),
    "a format that does not exist": (
        f"CREATE TABLE c (a INT) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'protobuf', 'protobuf.read-default' = 'x')",
        "Table 'c' is not valid: 1 problem.",
    ),
    "upsert": ("UPSERT INTO totals SELECT who, price FROM orders", "Write INSERT INTO"),
    "list": ("LIST JARS", "SHOW JARS"),
    "overlaps": ("SELECT (at, at) OVERLAPS (at, at) FROM orders", "a <= d AND c <= b"),
    "qualify": ("SELECT who FROM orders QUALIFY ROW_NUMBER() OVER (ORDER BY at) = 1", "WHERE n <= 1"),
    "an interval of a fraction": ("SELECT at + INTERVAL 1.5 SECOND FROM orders", "a string or a whole number"),
    "a connector to make rows": (
        "CREATE TABLE c (a INT) WITH ('connector' = 'faker')",
        "Random rows are made by datagen.",
    ),
    "a connector to databases": (
        "CREATE TABLE c (a INT) WITH ('connector' = 'mysql-cdc', 'hostname' = 'x')",
        "'format' = 'debezium-json'",
    ),
    "a misspelled server": (
        "CREATE TABLE c (a INT) WITH ('connector' = 'kafka', 'properties.bootstrap.server' = 'k', 'format' = 'raw')",
        "Is it 'properties.bootstrap.server' that should be 'properties.bootstrap.servers'?",
    ),
    "a misspelled zone": ("SET 'table.local-time-zone' = 'Asia/Shangai'", "Did you mean 'Asia/Shanghai'?"),
    "a misspelled type": ("CREATE TABLE c (a INTT) WITH ('connector' = 'datagen')", "Did you mean INT?"),
    "a connector that does not exist": ("CREATE TABLE c (a INT) WITH ('connector' = 'jdbc', 'url' = 'x')", "factory"),
}


def test_there_are_enough_of_them() -> None:
    assert len(TAKEN) + len(REFUSED) >= 40


@pytest.mark.parametrize("script", TAKEN.values(), ids=TAKEN)
def test_taken(script: str) -> None:
    session = Session()
    session.check(ORDERS)
    session.check(ORDERS + script)  # leaves the session as it was
    session.check(ORDERS + script)


@pytest.mark.parametrize(("script", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(script: str, message: str) -> None:
    with pytest.raises(HeadwaterError) as caught:
        Session().check(ORDERS + script)
    assert message in str(caught.value)


FAULTY = """
CREATE TABLE bad (a INT) WITH ('connector' = 'kafka', 'topic' = 'x');
CREATE VIEW typo AS SELEKT who FROM orders;
INSERT INTO lines SELECT a FROM bad;
INSERT INTO lines SELECT who FROM typo;
INSERT INTO lines SELECT nosuch FROM orders;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO lines SELECT who FROM orders;
  INSERT INTO lines SELECT id FROM orders;
  INSERT INTO lines SELECT missing FROM orders;
END;
INSERT INTO lines SELECT who FROM orders;
"""


def test_all_faulty_statements_are_reported_each_at_its_place() -> None:
    """Those that are wrong only because they use what another one should have created are not."""
    with pytest.raises(ScriptErrors) as caught:
        Session().check(ORDERS.strip() + FAULTY, "s.sql")
    first = ORDERS.strip().count("\n") + 2
    places = [(e.position.line - first, e.position.column) for e in caught.value.errors]  # type: ignore[attr-defined]
    assert places == [(0, 1), (1, 21), (4, 26), (7, 28), (8, 28)]
    assert str(caught.value).startswith("5 statements are wrong.\n\n")


def test_a_fault_in_a_view_is_shown_inside_it() -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS.strip() + "\nCREATE VIEW v AS\nSELECT id,\n  nosuch\nFROM orders;")
    position = caught.value.position
    assert position is not None
    assert (position.text, position.column) == ("  nosuch", 3)


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("b AS nosuch + 1", "nosuch", "nosuch"),
        ("b AS NOSUCH(a)", "NOSUCH(a)", "NOSUCH"),
        ("WATERMARK FOR t AS t - 5", "t - 5", "TIMESTAMP"),
        ("WATERMARK FOR t AS a", "a", "A watermark must be a TIMESTAMP(p)"),
        ("b AS a + 1, WATERMARK FOR b AS b", "b", "The time of a watermark must be a TIMESTAMP(p)"),
    ],
)
def test_computed_columns_and_watermarks_are_checked_when_created(column: str, text: str, message: str) -> None:
    script = f"CREATE TABLE c (a INT, t TIMESTAMP(3), {column}) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json')"
    with pytest.raises(SqlError) as caught:
        Session().check(script)
    position = caught.value.position
    assert position is not None
    assert message in caught.value.fact
    assert position.text[position.column - 1 :].startswith(text.split("(", maxsplit=1)[0].split(" ", maxsplit=1)[0])


def test_names_of_the_planner_never_show() -> None:
    script = ORDERS + "EXPLAIN SELECT UPPER(who), SUM(price) + 1 FROM orders GROUP BY UPPER(who) HAVING COUNT(*) > 1;"
    session = Session()
    results = session.sql(script)
    assert "__" not in str(results[-1].rows)
    none = "SET 'table.exec.sink.upsert-materialize' = 'none';"
    with pytest.raises(ValidationError) as caught:
        session.check(f"{none} INSERT INTO totals SELECT 'a', SUM(price) FROM orders GROUP BY UPPER(who)")
    assert "GROUP BY UPPER(who)" in str(caught.value)
    with pytest.raises(ValidationError, match=r"CAST\(UPPER\(who\) AS INT\)"):
        session.check(
            f"CREATE TABLE c (a INT) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json');"
            "INSERT INTO c SELECT UPPER(who) FROM orders"
        )


def test_names_of_the_other_side_of_a_join_never_show() -> None:
    session = Session()
    joined = "FROM orders o LEFT JOIN orders p ON o.id = p.id"
    with pytest.raises(ValidationError, match=r"CAST\(p\.id AS STRING\)"):
        session.check(f"{ORDERS} INSERT INTO lines SELECT p.id {joined}")
    with pytest.raises(ValidationError, match=r"RAND\(\) \* p\.price"):
        session.check(f"{ORDERS} INSERT INTO totals SELECT o.who, SUM(RAND() * p.price) {joined} GROUP BY o.who")
    with pytest.raises(SqlError, match=r"CAST\(p\.id AS STRING\)"):
        session.check(f"{ORDERS} CREATE VIEW v AS SELECT 'a' || p.id {joined}")
    with pytest.raises(ValidationError, match=r"CAST\(id0 AS STRING\)"):  # which is the user's own
        session.check(f"{ORDERS} INSERT INTO lines SELECT id0 FROM (SELECT id AS id0 FROM orders)")


def test_columns_of_a_window_are_shown_as_what_they_are() -> None:
    query = (
        "SELECT TUMBLE_START(at, INTERVAL '1' MINUTE), COUNT(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)"
    )
    results = Session().sql(f"{ORDERS} EXPLAIN {query}")
    shown = str(results[-1].rows)
    assert "group by (TUMBLE_START(at), TUMBLE_END(at))" in shown
    assert "w$" not in shown


@pytest.mark.parametrize(
    ("statement", "under"),
    [
        ("INSERT INTO linse SELECT who FROM orders", "linse"),
        ("SET 'table.exec.state.tll' = '1 h'", "'table.exec.state.tll'"),
        ("SET table.exec.state.ttl = soon", "soon"),
        ("SET 'table.sql-dialect' = 'hive'", "'hive'"),
        ("INSERT INTO lines SELECT o.whoo FROM orders o", "whoo"),
        ("INSERT INTO lines SELECT default_database.orders.whoo FROM orders", "whoo"),
        ("INSERT INTO lines SELECT nosuch.who FROM orders o", "nosuch"),
        ("DROP TABLE nosuch", "nosuch"),
        ("DESCRIBE default_database.nosuch", "nosuch"),
        ("SHOW CREATE TABLE nosuch", "nosuch"),
        ("ALTER TABLE nosuch SET ('a' = 'b')", "nosuch"),
        ("USE nosuch", "nosuch"),
        ("CREATE FUNCTION f AS 'nosuch.f' LANGUAGE PYTHON", "'nosuch.f'"),
    ],
)
def test_the_caret_is_under_what_is_wrong(statement: str, under: str) -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS + statement)
    position = caught.value.position
    assert position is not None
    assert position.text[position.column - 1 :][: position.length] == under


@pytest.mark.parametrize(
    ("statement", "under"),
    [
        ("INSERT INTO lines SELECT id FROM orders", "id"),
        (
            "INSERT INTO lines SELECT who FROM orders WHERE id = 1 UNION ALL SELECT who FROM orders; DROP VIEW lines",
            "lines",
        ),
        ("INSERT INTO totals (total, who) VALUES (1, 2)", "2"),
        ("CREATE TABLE c (a INT) WITH ('connector' = 'kafak', 'topic' = 'x')", "'connector' = 'kafak'"),
        ("RESET 'nosuch'", "'nosuch'"),
        ("CREATE TABLE orders (a INT) WITH ('connector' = 'print')", "CREATE"),
    ],
)
def test_a_statement_that_is_not_allowed_is_shown_where_it_is_wrong(statement: str, under: str) -> None:
    """As one of several, because the script is then sure to be shown."""
    with pytest.raises(ScriptErrors) as caught:
        Session().check(f"{ORDERS}{statement};\nDROP TABLE nosuch;")
    position = caught.value.errors[0].position  # type: ignore[attr-defined]
    assert position.text[position.column - 1 :][: position.length] == under


def test_an_option_in_a_hint_is_shown_in_it() -> None:
    query = "SELECT who FROM orders /*+ OPTIONS('scan.startup.mode' = 'latest-offset', 'nosuch' = '1') */"
    with pytest.raises(ValidationError) as caught:
        Session().check(f"{ORDERS}\nINSERT INTO lines {query}")
    above, below = str(caught.value).splitlines()[-3:-1]
    assert above[below.index("^") : below.rindex("^") + 1] == "'nosuch'"


@pytest.mark.parametrize(
    ("columns", "options", "under"),
    [
        ("a STRING METADATA FROM 'timestmp'", "'format' = 'json'", "a"),
        ("b INT, WATERMARK FOR b AS b", "'format' = 'json'", "b"),
        ("a INT", "'format' = 'csv', 'csv.field-delimiter' = '||'", "'csv.field-delimiter' = '||'"),
    ],
)
def test_what_is_wrong_with_a_table_is_shown_where_it_is(columns: str, options: str, under: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Session().check(f"CREATE TABLE c ({columns}) WITH ({KAFKA}, 'topic' = 'c', {options})")
    above, below = str(caught.value).splitlines()[-2:]
    assert above[below.index("^") : below.rindex("^") + 1] == under


def test_a_typo_in_a_large_table_fits_on_a_screen() -> None:
    """The hint is within the first lines, and the caret stands below what it is about."""
    options = ", ".join(f"'properties.p{i}' = 'a rather long value of an option'" for i in range(30))
    script = f"CREATE TABLE big (a INT) WITH ({KAFKA}, {options}, 'topic' = 't', 'formt' = 'json', 'format' = 'raw')"
    with pytest.raises(ValidationError) as caught:
        Session().check(script)
    lines = str(caught.value).splitlines()
    assert "formt  Did you mean 'format'?" in lines[3]
    assert len(lines) <= 8
    assert max(map(len, lines)) <= 80
    above, below = lines[5], lines[6]
    assert above[below.index("^") : below.rindex("^") + 1] == "'formt' = 'json'"


def test_check_and_explain_leave_the_session_as_it_was() -> None:
    session = Session()
    script = ORDERS + "CREATE DATABASE d; USE d; SET 'pipeline.name' = 'x';"
    session.check(script)
    session.explain(script)
    assert (session.catalog.names(), session.catalog.databases.current) == ((), "default_database")
    session.sql(script)
    assert session.catalog.databases.current == "d"


@pytest.mark.parametrize(
    ("script", "fact", "hint"),
    [
        ("INSERT INTO lines SELECT COUNTT(*) FROM orders", "There is no function 'COUNTT'", "Did you mean COUNT(*)?"),
        ("INSERT INTO lines SELECT SUM(*) FROM orders", "SUM takes no star: only COUNT does", "SUM(column)"),
        ("INSERT INTO lines SELECT who FORM orders", "Unexpected 'FORM'", "Did you mean FROM?"),
        ("INSERT INTO lines SELECT who FROM orders WERE id = 1", "Unexpected 'WERE'", "Did you mean WHERE?"),
        ("INSERT INTO lines SELECT who FROM orders GRUOP BY who", "Unexpected 'GRUOP'", "Did you mean GROUP BY?"),
        ("SELECT * FROM orders MATCH_RECOGNIZE (PATTERN (a))", "MATCH_RECOGNIZE is not supported", "docs/limits.md"),
        ("SELECT who FROM orders # all of them", "Unexpected '#'", ""),
        ("SELECT who FROM orders)", "Unexpected ')'", ""),
        ("SELECT SOURCE_WATERMARK() FROM orders", "SOURCE_WATERMARK is not supported", "INTERVAL '5' SECOND"),
        ("SELECT id FROM orders WHERE id > ALL (SELECT 1)", "A comparison with ANY or ALL is not supported", "MAX"),
        (
            "CREATE TABLE c (a INT) WITH ('connector' = 'print' 'print-identifier' = 'x')",
            "Expected ',' or ')', found the string 'print-identifier'",
            "Is a ',' missing",
        ),
        ("SELECT who, FROM orders", "Expected an expression, found 'FROM'", "Remove the ','"),
        ("SELECT who FROM orders WHERE who == 'a'", "Expected an expression, found '='", "one '='"),
        (
            "SELECT TUMBLE_START(at, INTERVAL '1' DAY), COUNT(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '2' DAY)",
            "TUMBLE_START needs TUMBLE(…) with the same arguments in GROUP BY",
            "window_start",
        ),
        ("SELECT NTILE(4) OVER (ORDER BY at) FROM orders", "NTILE with OVER is not supported here", "docs/sql.md"),
        ("SELECT PERCENTILE(price, 0.5) FROM orders", "PERCENTILE is not supported", "docs/functions-python.md"),
        ("SELECT LAG(price) FROM orders", "LAG needs OVER (…)", "OVER (ORDER BY …)"),
        (
            "CREATE TABLE c (a INT) WITH (connector = 'print')",
            "Expected an option's key in quotes, found 'connector'",
            "WITH ('key' = 'value', …)",
        ),
    ],
)
def test_messages_name_what_is_wrong(script: str, fact: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS + script)
    assert caught.value.fact == fact
    assert hint in caught.value.hint
