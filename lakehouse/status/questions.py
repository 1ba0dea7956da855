"""The questions of a status: one script per host, and one request to each service with metrics."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from urllib.parse import quote, urlencode

from lakehouse.maybe import Answer, unknown
from lakehouse.model import endpoints, placement
from lakehouse.model import services as catalogue
from lakehouse.model.inventory import Host
from lakehouse.model.placement import Cluster
from lakehouse.model.services import Service
from lakehouse.remote.probing import Http, Question, Reply, Shell, Thrift
from plugins.module_utils.lakehouse import away, host_state

# Timeout of each part: one may hang, as on a lost mount or a database.
PART_SECONDS = 2
_MARK = "@@lakehouse"
_NAME, _END = re.compile(r"\w+"), re.compile(r"= (\d{1,3})")

UNIT_PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveState",
    "SubState",
    "MainPID",
    "NRestarts",
    "ActiveEnterTimestamp",
    "UnitFileState",
)
# The end of a list that may be empty.
END = host_state.END
JMX = "/jmx?qry=Hadoop:service=NameNode,name="
# Pages for the status: listener and path.
_PAGES = {
    # FSNamesystem has more counters, but caches its metrics for ten seconds.
    "hdfs": ("namenode_http", f"{JMX}*State"),
    "namenode": ("namenode_http", f"{JMX}NameNodeInfo"),
    "spark": ("spark_master_http", "/json/"),
    "trino": ("trino_http", "/v1/info"),
    "trino_nodes": ("trino_http", "/v1/node"),
    "trino_queries": ("trino_http", "/v1/query"),
    "flink": ("flink_rest", "/overview"),
}
METASTORE = "metastore"
# The usage of the lakehouse's root, and of its snapshots.
CONTENT = "content"
# The account that makes backups and owns their folder.
KEEPER = "lakehouse-backup"
# Limit of a file with the result of the last run.
_FILE_BYTES = 64 * 1024
# A row for each table. Only Iceberg records commits in the metastore. Parameters are text from users: one
# that is not a number must not fail the query for all tables.
TABLES = """
SELECT "TBL_ID",
       CASE WHEN "TBL_TYPE" = 'VIRTUAL_VIEW' THEN 'view'
            WHEN upper(max(value) FILTER (WHERE key = 'table_type')) = 'ICEBERG' THEN 'iceberg'
            WHEN lower(max(value) FILTER (WHERE key = 'spark.sql.sources.provider')) = 'delta' THEN 'delta'
            ELSE 'hive' END AS format,
       max(CASE WHEN value ~ '^[0-9]{1,18}$' THEN value::bigint END)
         FILTER (WHERE key = 'current-snapshot-timestamp-ms') AS committed
FROM "TBLS" LEFT JOIN (
  SELECT "TBL_ID", "PARAM_KEY" AS key, "PARAM_VALUE" AS value FROM "TABLE_PARAMS"
) parameters USING ("TBL_ID")
GROUP BY "TBL_ID", "TBL_TYPE"
"""
# The database aggregates, so that many tables are not slower than few.
_SQL = f"""
SELECT 'version', current_setting('server_version'), NULL
UNION ALL
SELECT format, count(*)::text, max(committed)::text FROM ({TABLES}) tables GROUP BY format
"""  # noqa: S608 -- of constants


# Name and text of each command that a host's script runs.
Commands = Iterable[tuple[str, str]]


def _no_commands(_: Cluster, __: Host) -> Commands:
    return ()


def questions(
    cluster: Cluster,
    extra: Callable[[Cluster, Host], Commands] = _no_commands,
    seconds: int = PART_SECONDS,
) -> list[Question]:
    """Return all questions; `extra` returns further commands for a host's script.

    `seconds` is the timeout of each command.
    """
    return [*_shells(cluster, extra, seconds), *_https(cluster), *_thrifts(cluster)]


def shell(host: Host) -> str:
    """Return the name of the question to a host."""
    return f"host {host.name}"


def parts(reply: Answer[Reply]) -> dict[str, Answer[str]]:
    """Parse the output of each part of a host's script; a failed one is unknown, with its error message."""
    if reply.value is None:
        return {}
    parsed: dict[str, Answer[str]] = {}
    blocks = f"\n{reply.value.text}".split(f"\n{_MARK} ")[1:]
    for part, end in pairwise(blocks):
        name, newline, text = part.partition("\n")
        code = _END.fullmatch(end.partition("\n")[0])
        if code and newline and _NAME.fullmatch(name):
            text += newline
            is_good = code[1] == "0"
            parsed[name] = Answer(text) if is_good else unknown(_complaint(text) or f"exit {code[1]}")
    return parsed


def _complaint(text: str) -> str:
    """Return the last line that is not indented, of those with a colon if there are any."""
    lines = [line for line in text.splitlines() if line[:1].strip()]
    return next(reversed([line for line in lines if ": " in line] or lines), "")


def folders(host: Host) -> list[str]:
    """Return the folders of the inventory on a host whose disks may fill."""
    variables = host.variables
    paths = [variables["lakehouse_data_dir"]]
    for group, name in (("namenode", "lakehouse_namenode_dirs"), ("datanodes", "lakehouse_datanode_dirs")):
        paths += variables[name] if group in host.groups else []
    return list(dict.fromkeys(["/", *map(str, paths)]))


def volumes(host: Host, services: tuple[Service, ...], *extra_folders: str) -> str:
    """Return the commands that set a shell's arguments to the folders whose disks may fill.

    These are those of the inventory, the writable paths of its units, and mounts below one of them.
    """
    names = [*map(placement.unit, services), *catalogue.load().timers]
    units = shlex.join(f"{name}.service" for name in names)
    return "\n".join((
        f"set -- {shlex.join([*folders(host), *extra_folders])}",
        f"paths=$(systemctl show -P ReadWritePaths -- {units}) || exit",
        # systemd's prefix of an optional path is a dash.
        "for path in $paths; do",
        '  case "$path" in -*) ;; *) [ ! -d "$path" ] || set -- "$@" "$path" ;; esac',
        "done",
        'for folder in "$@"; do',
        "  while read -r _ mounted _; do",
        '    case "$mounted" in "${folder%/}"/?*) [ "$folder" = / ] || set -- "$@" "$mounted" ;; esac',
        "  done < /proc/self/mounts",
        "done",
    ))  # fmt: skip


def space(host: Host, services: tuple[Service, ...], *extra_folders: str) -> str:
    """Return the command that prints size, free bytes, mount and folder of each disk that may fill."""
    return f'{volumes(host, services, *extra_folders)}\ndf -B1 --output=size,avail,target,file -- "$@"'


def _shells(cluster: Cluster, extra: Callable[[Cluster, Host], Commands], seconds: int) -> Iterator[Question]:
    for host in cluster.hosts:
        commands = dict(_commands(host, cluster.services[host.name])) | dict(extra(cluster, host))
        yield Shell(shell(host), host.name, _script(commands, seconds))


def _script(commands: Mapping[str, str], seconds: int) -> str:
    """Return a script that runs each command, and marks its output and exit code.

    Output may contain files of users, so a line that begins with the mark gets a space before it.
    """
    limited = {name: f"timeout -k 1 {seconds} sh -c {shlex.quote(text)}" for name, text in commands.items()}
    lines = (
        f"echo; echo '{_MARK} {name}'; out=$({command} 2>&1 </dev/null); code=$?;"
        f' printf "%s\\n" "$out" | sed "s/^{_MARK}/ &/"; echo; echo "{_MARK} = $code"'
        for name, command in limited.items()
    )
    return "\n".join(["export LC_ALL=C", *lines])


def _commands(host: Host, services: tuple[Service, ...]) -> Iterator[tuple[str, str]]:
    variables = host.variables
    units = " ".join(shlex.quote(f"{placement.unit(service)}.service") for service in services)
    links = f"{shlex.quote(str(variables['lakehouse_install_dir']))}/*/current"
    yield "began", "date +%s.%N"
    yield "units", f"systemctl show --timestamp=unix --property={','.join(UNIT_PROPERTIES)} {units or 'none'}"
    yield "uptime", "cat /proc/uptime"
    yield "memory", "cat /proc/meminfo"
    yield "away", _print_file(away_file(host))
    if "namenode" in host.groups:
        yield "notes", _print_file(notes_file(host))
        yield "unformatted", as_root(_unformatted(list(map(str, variables["lakehouse_namenode_dirs"]))))
    yield "disks", space(host, services)
    yield (
        "releases",
        f'for link in {links}; do [ -L "$link" ] && echo "$link $(readlink "$link")"; done; true',
    )
    if any(service.name == "postgresql" for service in services):
        yield (
            "database",
            psql(host, _SQL),
        )
    if command := backups(host):
        yield "backup", command
    if command := commits(host):
        yield "history", command
    yield "ended", "date +%s.%N"


def away_file(host: Host) -> str:
    """Return the path of the mark of a host that is away."""
    return f"{host.variables['lakehouse_config_dir']}/{away.FILE}"


def notes_file(host: Host) -> str:
    """Return the path of the marks of offline hosts on the NameNode's host."""
    return f"{host.variables['lakehouse_config_dir']}/{away.NOTES}"


def backups(host: Host) -> str | None:
    """Return the command that prints the result of the last backup; None on other hosts."""
    variables = host.variables
    if not variables["lakehouse_backup_enabled"] or variables["lakehouse_backup_host"] != host.name:
        return None
    return last_backup(variables["lakehouse_backup_dir"])


def last_backup(folder: object) -> str:
    """Return the command that prints the result of the last backup in a folder; nothing before the first."""
    return _read_as(KEEPER, f"{folder}/state/last.json")


def commits(host: Host) -> str | None:
    """Return the command that prints the result of the last scheduled commit; None on other hosts."""
    variables = host.variables
    if not variables["lakehouse_catalog_enabled"] or "postgresql" not in host.groups:
        return None
    return _read_as(host.entry("lakehouse_users", "hive"), f"{variables['lakehouse_catalog_dir']}/last.json")


def _print_file(file: str) -> str:
    """Return the command that prints a file, if it exists."""
    path = shlex.quote(file)
    return f"if [ -e {path} ]; then cat {path}; fi"


def _read_as(account: str, file: str) -> str:
    """Return the command that prints a file of an account, if it exists.

    The account may replace it by a link or an endless file, so root must not read it.
    """
    path = shlex.quote(file)
    read = f"if [ -e {path} ]; then head -c {_FILE_BYTES} -- {path}; fi"
    return _as_account(account, shlex.join(["sh", "-c", read]))


def _as_account(account: str, command: str) -> str:
    """Return the command that runs another as an account, by runuser or sudo."""
    change = 'if [ "$(id -u)" = 0 ]; then as="runuser"; else as="sudo -n"; fi'
    return f"cd /; {change}; $as -u {shlex.quote(account)} -- {command}"


def _unformatted(folders: list[str]) -> str:
    """Return the command that prints the NameNode's folders without an image."""
    return (
        f'for folder in {shlex.join(folders)}; do [ -e "$folder/current/VERSION" ] || echo "$folder"; done;'
        f" echo {shlex.quote(END)}"
    )


def as_root(command: str) -> str:
    """Return the command that runs another as root."""
    return f'if [ "$(id -u)" = 0 ]; then {command}; else sudo -n sh -c {shlex.quote(command)}; fi'


def psql(host: Host, sql: str) -> str:
    """Return the command that queries the metastore's database as the metastore's role.

    Never as the superuser, with whose privileges a malicious function in that database would run.
    """
    return _psql(
        host, sql, host.entry("lakehouse_database", "user"), host.entry("lakehouse_database", "name")
    )


def server_psql(host: Host, sql: str) -> str:
    """Return the command that queries the server as a whole, as the superuser in its own database."""
    return _psql(host, sql, "postgres", "postgres")


def _psql(host: Host, sql: str, role: str, database: str) -> str:
    """Return the command that queries a database as PostgreSQL's Unix account, which needs no password."""
    query = [
        "env",
        "PGCONNECT_TIMEOUT=2",
        "PGOPTIONS=-c default_transaction_read_only=on",
        "psql",
        "-XAt",
        "-p",
        str(endpoints.on("postgresql", host).port),
        "-U",
        str(role),
        "-d",
        str(database),
    ]
    return _as_account("postgres", shlex.join([*query, "-c", sql]))


def _https(cluster: Cluster) -> Iterator[Question]:
    # Trino lists the queries of all users to its own user only.
    headers = {"X-Trino-User": str(cluster.variable("lakehouse_users")["trino"])}
    for name, url in cluster.urls(_PAGES):
        yield Http(name, url, headers if name.startswith("trino") else {})
    root, superuser = cluster.variable("lakehouse_root"), cluster.variable("lakehouse_users")["hdfs"]
    path = f"/webhdfs/v1{quote(str(root))}?{urlencode({'op': 'GETCONTENTSUMMARY', 'user.name': superuser})}"
    for name, url in cluster.urls({CONTENT: ("namenode_http", path)}):
        yield Http(name, url, {})


def _thrifts(cluster: Cluster) -> Iterator[Question]:
    if endpoint := cluster.endpoint("metastore"):
        yield Thrift(METASTORE, *endpoint.place, call="get_all_databases")
