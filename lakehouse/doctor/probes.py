"""The questions of checks beyond those of a status: commands in a host's script, URLs, and calls."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from lakehouse.catalog.shared_files import PARAMETERS
from lakehouse.model import placement
from lakehouse.model import services as catalogue
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.remote import host_manifest
from lakehouse.remote.probing import Http, Question, Sql, Thrift
from lakehouse.status import questions
from plugins.module_utils.lakehouse import postgresql_login

LOGS = "/var/log"
# Timeout of one command on a host: a status is faster, and a machine may be busy.
PART_SECONDS = 5
# End of the list of unreachable DataNodes.
TRIED = "tried"
# Timeout of a connection to a DataNode, with the start of the shell.
_REACH_SECONDS = 3
EDITS = "namenode_edits"
CHECKPOINT = ("hdfs-checkpoint.timer", "hdfs-checkpoint.service")
HISTORY = ("lakehouse-catalog.timer", "lakehouse-catalog.service")
BACKUP = ("lakehouse-backup.timer", "lakehouse-backup.service")
# A failed segment may succeed with the next attempt: then none is waiting.
_ARCHIVE = """
SELECT 'mode', current_setting('archive_mode')
UNION ALL SELECT 'failing', (coalesce(last_failed_time > coalesce(last_archived_time, 'epoch'), false))::text
  FROM pg_stat_archiver
UNION ALL SELECT 'waiting', count(*)::text FROM pg_ls_archive_statusdir() WHERE name LIKE '%.ready'
"""
# Enough calls to use a dead connection in the pool of a metastore.
CALLS = tuple(f"call {number}" for number in range(20))
# Configuration files that are compared with processes, each with the services whose hosts have it.
_FILES = {
    "hdfs_site": ({"namenode"}, "hadoop/namenode/hdfs-site.xml"),
    "core_site": ({"namenode"}, "hadoop/core-site.xml"),
    "hive_site": ({"metastore"}, "hive/hive-site.xml"),
    "spark_master_conf": ({"spark_master"}, "spark/spark-master.conf"),
    "trino_config": ({"trino"}, "trino/config.properties"),
    "flink_config": ({"flink_jobmanager", "flink_taskmanager"}, "flink/cluster/config.yaml"),
}
_JSON = {"Accept": "application/json"}
# Further pages for the doctor: listener and path.
_PAGES = {
    EDITS: ("namenode_http", f"{questions.JMX}FSNamesystem"),
    "namenode_conf": ("namenode_http", "/conf"),
    "flink_taskmanagers": ("flink_rest", "/taskmanagers"),
    "flink_config": ("flink_rest", "/jobmanager/config"),
    # An HTML page: Spark's master has no API with its settings.
    "spark_environment": ("spark_master_http", "/environment/"),
}
# A metastore returns only settings that sessions may change; the kit sets this one.
METASTORE_KEY = "hive.metastore.disallow.incompatible.col.type.changes"
# Of the whole server: a role can only count the sessions of others.
_CONNECTIONS = """
SELECT 'used', count(*)::text FROM pg_stat_activity WHERE backend_type = 'client backend'
UNION ALL SELECT 'allowed', (current_setting('max_connections')::int
                             - current_setting('superuser_reserved_connections')::int)::text
"""
_SQL = """
SELECT 'schema', string_agg("SCHEMA_VERSION", ',') FROM "VERSION"
UNION ALL SELECT 'lock_seconds', floor(extract(epoch FROM now()) - min(hl_last_heartbeat) / 1000)::text
  FROM hive_locks WHERE hl_last_heartbeat > 0
UNION ALL SELECT 'misplaced', count(*)::text FROM (
  SELECT "LOCATION" AS place FROM "TBLS" JOIN "SDS" USING ("SD_ID")
  UNION ALL SELECT "DB_LOCATION_URI" FROM "DBS"
) places WHERE place ~ '^(file:|/|hdfs://[^/]+:[0-9]+/)'
"""
# Tables and databases whose folder equals or is in another one's, and those others: but for tables of their
# own database, and for what is in the default one. lakehouse/catalog/shared_files.py decides which may.
_OVERLAPS = r"""
SELECT 'jit', set_config('jit', 'off', false);
WITH places AS MATERIALIZED (
  SELECT "NAME" AS database, '' AS name, '' AS kind, "DB_ID" AS id, "DB_LOCATION_URI" AS place FROM "DBS"
  UNION ALL SELECT d."NAME", t."TBL_NAME", t."TBL_TYPE", t."TBL_ID", unnest(ARRAY[s."LOCATION", (
      SELECT "PARAM_VALUE" FROM "SERDE_PARAMS" p
        WHERE p."SERDE_ID" = s."SERDE_ID" AND p."PARAM_KEY" = 'path')])
    FROM "TBLS" t JOIN "DBS" d USING ("DB_ID") JOIN "SDS" s USING ("SD_ID")
    WHERE t."TBL_TYPE" <> 'VIRTUAL_VIEW'
), o AS MATERIALIZED (
  SELECT database, name, kind, id, place,
      rtrim(regexp_replace(regexp_replace(place, '^(hdfs:)?(//[^/]*)?', ''), '/{2,}', '/', 'g'), '/') AS path
    FROM places WHERE place <> '' AND place NOT LIKE '%-\_\_PLACEHOLDER\_\_'
), pairs AS MATERIALIZED (
  SELECT one.name AS one_name, one.id AS one_id, two.name AS two_name, two.id AS two_id
    FROM o one CROSS JOIN LATERAL generate_series(1, cardinality(string_to_array(one.path, '/'))) part
    JOIN o two ON two.path = array_to_string((string_to_array(one.path, '/'))[:part], '/')
      AND (two.database, two.name) <> (one.database, one.name)
    WHERE NOT (two.name = '' AND two.path <> one.path AND (two.database = 'default'
      OR one.name <> '' AND two.database = one.database))
    LIMIT 10000 -- what PostgreSQL reckons with, too
), ids AS (
  SELECT one_name = '' AS is_database, one_id AS id FROM pairs UNION SELECT two_name = '', two_id FROM pairs
)
SELECT 'overlaps', coalesce(jsonb_agg(DISTINCT jsonb_build_object(
    'location', place, 'database', database, 'table', name, 'type', kind, 'parameters', coalesce(
      (SELECT jsonb_object_agg("PARAM_KEY", "PARAM_VALUE") FROM (
        SELECT "PARAM_KEY", "PARAM_VALUE" FROM "TABLE_PARAMS" WHERE "TBL_ID" = id AND name <> ''
        UNION ALL SELECT "PARAM_KEY", "PARAM_VALUE" FROM "DATABASE_PARAMS" WHERE "DB_ID" = id AND name = ''
      ) parameters WHERE "PARAM_KEY" IN (:keys)), '{}'))), '[]')::text
  FROM o WHERE (name = '', id) IN (SELECT is_database, id FROM ids)
"""
# Each name of a type that is not one of the plain ones, of one column that has it: those with unusual letters
# first. lakehouse/tables/hive_types.py decides which Trino cannot read.
_TYPES = r"""
SELECT 'types', coalesce(jsonb_agg(one), '[]')::text FROM (
  SELECT (array_agg(jsonb_build_object(
      'database', d."NAME", 'table', t."TBL_NAME", 'column', col, 'type', kind)
      ORDER BY d."NAME", t."TBL_NAME", col))[1] AS one
    FROM (
      SELECT t."TBL_ID" AS id, c."COLUMN_NAME" AS col, c."TYPE_NAME" AS kind
        FROM "TBLS" t JOIN "SDS" USING ("SD_ID") JOIN "COLUMNS_V2" c USING ("CD_ID")
      UNION ALL SELECT "TBL_ID", "PKEY_NAME", "PKEY_TYPE" FROM "PARTITION_KEYS"
    ) columns JOIN "TBLS" t ON t."TBL_ID" = id JOIN "DBS" d USING ("DB_ID")
    WHERE kind !~ '^(binary|boolean|tinyint|smallint|int|bigint|float|double|string|date|timestamp)$'
      AND kind !~ '^(decimal|char|varchar)\([0-9]+(,[0-9]+)?\)$' AND length(kind) <= 4000
    GROUP BY kind
    ORDER BY kind ~ '[^a-zA-Z0-9_.$ <>,:()]' DESC, kind ~ ':[^<>,:()]*:' DESC, kind
    LIMIT 1000
) kinds
"""
# Prints a unit's properties, its process's limits and memory, and the ctime of each file that it reads and of
# links to it: unit files, and those that its role lists in the unit (X-Reads).
SHOW = r"""
show() {
  echo "@ $1"
  known=$(systemctl show --timestamp=unix --property=MainPID,ExecMainStartTimestamp \
    --property=LimitNOFILESoft,LimitNPROCSoft,FragmentPath,DropInPaths "$1.service")
  echo "$known"
  pid=$(echo "$known" | sed -n 's/^MainPID=//p')
  if [ "${pid:-0}" -gt 0 ]; then
    grep -E '^Max (open files|processes)' "/proc/$pid/limits"
    sed -nE 's/^Max (open files|processes)/Most \1/p' /proc/1/limits
    grep -E '^Vm(RSS|Swap):' "/proc/$pid/status"
  fi
  unit=$(echo "$known" | sed -nE 's/^(FragmentPath|DropInPaths)=//p')
  reads=$(cat $unit </dev/null 2>/dev/null | sed -n 's/^X-Reads=//p')
  stat -c 'file %Z %n' -- $unit $reads 2>/dev/null
  stat -L -c 'file %Z %n' -- $unit $reads 2>/dev/null
  true
}
"""


def commands(cluster: Cluster, host: Host) -> Iterator[tuple[str, str]]:
    """Yield name and text of each further command of a host's script."""
    services = cluster.services[host.name]
    names = {service.name for service in services}
    config = str(host.variables["lakehouse_config_dir"])
    yield "space", questions.space(host, services, LOGS)
    yield "inodes", f'{questions.volumes(host, services, LOGS)}\ndf -P -i -- "$@"'
    yield "manifest", questions.as_root(host_manifest.script(config))
    yield "thp", _pages()
    yield "names", _names([(node.name, node.address) for node in cluster.hosts])
    yield "listening", "ss -Hltn"
    yield "reach", _reach([endpoint.place for endpoint in cluster.endpoints("datanode_data")])
    yield "packages", _packages()
    units = (shlex.quote(placement.unit(service)) for service in services)
    yield "daemons", "\n".join([SHOW, *(f"show {unit}" for unit in units)])
    yield "left", _active(sorted(_units_but(names)))
    for part, (readers, path) in _FILES.items():
        if names & readers:
            yield part, f"cat {shlex.quote(f'{config}/{path}')}"
    if "namenode" in names:
        yield "checkpoint", f"systemctl show --property=Id,ActiveState,Result {shlex.join(CHECKPOINT)}"
    if "metastore" in names:
        program = Path(postgresql_login.__file__).read_text(encoding="utf-8")
        login = shlex.join(["python3", "-c", program, f"{config}/hive/hive-site.xml"])
        yield "login", questions.as_root(login)
    if "postgresql" in names:
        yield "catalog", questions.psql(host, _SQL)
        yield "overlaps", questions.psql(host, _OVERLAPS.replace(":keys", str(PARAMETERS)[1:-1]))
        yield "types", questions.psql(host, _TYPES)
        yield "connections", questions.server_psql(host, _CONNECTIONS)
        if host.variables["lakehouse_backup_enabled"]:
            yield "archive", questions.server_psql(host, _ARCHIVE)
    show = "systemctl show --timestamp=unix --property=Id,ActiveState,Result,ActiveEnterTimestamp"
    if questions.backups(host):
        yield "backup_units", f"{show} {shlex.join(BACKUP)}"
    if questions.commits(host):
        yield "history_units", f"{show} {shlex.join(HISTORY)}"
    if "trino" in names:
        yield "catalogs", f"cd {shlex.quote(f'{config}/trino/catalog')} && sha256sum -- *.properties"


def extra_questions(cluster: Cluster) -> Iterator[Question]:
    """Yield the further questions over HTTP, Thrift and SQL."""
    for name, url in cluster.urls(_PAGES):
        yield Http(name, url, _JSON)
    if endpoint := cluster.endpoint("metastore"):
        yield from (Thrift(name, *endpoint.place, call="get_all_databases") for name in CALLS)
        yield Thrift("metastore_conf", *endpoint.place, call="getMetaConf", argument=METASTORE_KEY)
    if endpoint := cluster.endpoint("trino_http"):
        user = str(cluster.variable("lakehouse_users")["trino"])
        yield Sql("trino_session", endpoint.uri, user, "SHOW SESSION")


def _units_but(names: set[str]) -> set[str]:
    """Return the units of the catalogue except those of the named services."""
    rows = catalogue.load().services.values()
    excluded = {placement.unit(row) for row in rows if row.name in names}
    return {placement.unit(row) for row in rows} - excluded


def _active(units: list[str]) -> str:
    """Return the command that prints the active ones of these units."""
    unit_names = shlex.join(f"{unit}.service" for unit in units)
    return f"systemctl list-units --plain --no-legend --state=active -- {unit_names} | cut -d ' ' -f 1"


def _pages() -> str:
    """Return the command that prints when the kernel makes huge pages, and stalls processes for them."""
    folder = "/sys/kernel/mm/transparent_hugepage"
    return f"cat {folder}/enabled {folder}/defrag 2>/dev/null || printf '[never]\\n[never]\\n'"


def _names(hosts: list[tuple[str, str]]) -> str:
    """Return the command that prints each host's name, addresses, and names of its address."""
    lines = (
        f'echo "{name}|$(getent ahostsv4 {shlex.quote(name)} | cut -d " " -f 1 | sort -u | tr "\\n" " ")'
        f'|$(getent hosts {shlex.quote(address)} | tr -s " " | cut -d " " -f 2-)"'
        for name, address in hosts
    )
    return "\n".join(lines)


def _reach(places: list[tuple[str, int]]) -> str:
    """Return the command that prints unreachable DataNodes; /dev/tcp needs bash."""
    attempts = (
        f"(timeout {_REACH_SECONDS} bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null"
        f" || echo '{address}:{port}') &"
        for address, port in places
    )
    return "\n".join([*attempts, "wait", f"echo {TRIED}"])


def _packages() -> str:
    """Return the command that prints the versions of installed Java packages."""
    line_format = "${db:Status-Abbrev} ${Package} ${Version}\\n"
    return f"dpkg-query -W -f '{line_format}' 'openjdk-*-jre-headless' 2>/dev/null | grep '^ii' || true"
