"""Reads an archive with one engine and prints counts and sums as JSON.

usage: read_back.py ENGINE FOLDER
"""

import json
import sys

engine, folder = sys.argv[1:]
files = f"{folder}/events/*/*/*.parquet"

TOTALS = """
    SELECT COUNT(*), SUM(seq), COUNT(DISTINCT id), ROUND(SUM(duration_ms), 3),
           SUM(CASE WHEN decision = 'deny' THEN 1 ELSE 0 END), COUNT(tool), COUNT(session_id)
    FROM events
"""
DAYS = "SELECT CAST(day AS {text}), COUNT(*) FROM events GROUP BY 1 ORDER BY 1"


def duckdb_engine():
    import duckdb

    connection = duckdb.connect()
    connection.execute(
        f"CREATE VIEW events AS SELECT * FROM read_parquet('{files}', hive_partitioning = true)"
    )
    runs = """
        SELECT r.hook, COUNT(*), ROUND(SUM(r.duration_ms), 3)
        FROM (SELECT UNNEST(runs) AS r FROM events) GROUP BY 1 ORDER BY 1
    """
    times = "SELECT MIN(epoch_us(time)), MAX(epoch_us(time)) FROM events"
    days = DAYS.format(text="VARCHAR")
    return [connection.execute(sql).fetchall() for sql in (TOTALS, days, runs, times)]


def chdb_engine():
    import chdb

    # ClickHouse reads the day from the path.
    source = f"file('{files}', Parquet)"
    runs = f"""
        SELECT run.hook AS hook, COUNT(*), ROUND(SUM(run.duration_ms), 3)
        FROM (SELECT arrayJoin(runs) AS run FROM {source}) GROUP BY hook ORDER BY hook
    """
    days = f"""
        SELECT extract(_path, 'day=([0-9-]+)') AS day, COUNT(*) FROM {source}
        GROUP BY day ORDER BY day
    """
    times = f"""
        SELECT toUnixTimestamp64Micro(MIN(time)), toUnixTimestamp64Micro(MAX(time)) FROM {source}
    """
    answers = []
    for sql in (TOTALS.replace("events", source), days, runs, times):
        lines = str(chdb.query(sql, "JSONCompactEachRow")).splitlines()
        answers.append([json.loads(line) for line in lines])
    return answers


def spark_engine():
    from pyspark.sql import SparkSession

    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.read.parquet(f"{folder}/events").createOrReplaceTempView("events")
    runs = """
        SELECT r.hook, COUNT(*), ROUND(SUM(r.duration_ms), 3)
        FROM (SELECT EXPLODE(runs) AS r FROM events) GROUP BY 1 ORDER BY 1
    """
    times = "SELECT MIN(unix_micros(time)), MAX(unix_micros(time)) FROM events"
    days = DAYS.format(text="STRING")
    answers = []
    for sql in (TOTALS, days, runs, times):
        answers.append([list(row) for row in spark.sql(sql).collect()])
    spark.stop()
    return answers


try:
    read = {"duckdb": duckdb_engine, "chdb": chdb_engine, "pyspark": spark_engine}[engine]
    answers = read()
except ModuleNotFoundError as error:
    print(json.dumps({"missing": error.name}))
    sys.exit(0)


def plain(cell):
    number = cell
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return str(cell)
    return round(number, 3)


print(json.dumps([[[plain(cell) for cell in row] for row in rows] for rows in answers]))
