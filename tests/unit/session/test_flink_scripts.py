"""Small scripts in Flink's spelling: those that must be taken as they are, and those that must be refused with a
message that says what to do."""

from __future__ import annotations

import pytest
from order_tables import KAFKA, ORDERS

from headwater.errors import HeadwaterError
from headwater.session import Session


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
    "add a column that is there": ("ALTER TABLE orders ADD who STRING", "ALTER TABLE … MODIFY who changes it"),
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


def test_check_and_explain_leave_the_session_as_it_was() -> None:
    session = Session()
    script = ORDERS + "CREATE DATABASE d; USE d; SET 'pipeline.name' = 'x';"
    session.check(script)
    session.explain(script)
    assert (session.catalog.names(), session.catalog.databases.current) == ((), "default_database")
    session.sql(script)
    assert session.catalog.databases.current == "d"
