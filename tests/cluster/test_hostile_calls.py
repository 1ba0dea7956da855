"""What strangers send to the metastore's port reaches no SQL, changes nothing and stops no service."""

from __future__ import annotations

import re
import secrets
import socket
import struct
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    Database,
    FieldSchema,
    FireEventRequest,
    FireEventRequestData,
    HeartbeatTxnRangeRequest,
    InsertEventRequestData,
    LockComponent,
    LockRequest,
    MetaException,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    UnlockRequest,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport

from suites.testbed.namenode import NameNode
from suites.testbed.waiting import wait_for
from tests.cluster import hostile
from tests.cluster.catalog_database import held, partitions, sql, waiting
from tests.cluster.machines import Machine, Machines
from tests.cluster.metastore_port import connected, iceberg_table, in_thread

pytestmark = [pytest.mark.cluster, pytest.mark.alone, pytest.mark.group("metastore")]

MEMBER, READER, OUTSIDER, ANONYMOUS = "member", "reader", "outsider", "anonymous"
STRANGERS = (READER, OUTSIDER, ANONYMOUS)
PAYLOADS = ("kit'h", "kit\\h", "kit\x01h", "kit\0h")
# What PostgreSQL logs when a string was a part of a statement.
COMPLAINTS = "syntax error|unterminated|invalid byte sequence|invalid Unicode|nonstandard use"
REFUSED = "may not write|Permission denied|a range of transactions has"
ELSEWHERE = "is on another host than the warehouse|did not say who it is"
COUNTERS = "('SEQUENCE_TABLE', 'next_txn_id', 'next_lock_id', 'next_compaction_queue_id')"
# The housekeeper of the metastore looks every 15 s.
HOUSEKEEPING_SECONDS = 90
MANY = 10_000
BATCH = 1_000
# More than the threads of the metastore (hive_metastore_max_threads).
CONNECTIONS = 230
# More than its sessions of the database (hive_metastore_pool_size).
QUESTIONS = 30
QUESTIONERS = 5
TOO_LARGE = (
    "the answer would hold more than N MiB of the metastore's memory; ask for parts of it:"
    " by a filter, or for names first and then by names"
)
OTHERS_FIRST = (
    "other answers hold the memory that the metastore has for them; retry, or ask for less at a time"
)
CALL = struct.pack(">I", 0x80010001)


def user_of(node: Machine, party: str) -> str | None:
    """Return the user name that a party sends."""
    names: dict[str, str | None] = {
        MEMBER: node.variable("lakehouse_users")["spark"],
        READER: node.variable("lakehouse_readers")[0],
        OUTSIDER: "nobody",
        ANONYMOUS: None,
    }
    return names[party]


def address(node: Machine) -> tuple[str, int]:
    return node.host.address, int(node.variable("lakehouse_ports")["metastore"])


@pytest.fixture
def database_host(machines: Machines) -> Machine:
    return next(machine for machine in machines.values() if "postgresql" in machine.host.groups)


@pytest.fixture
def table(node: Machine) -> Iterator[str]:
    """A database of a member with the table `t`, gone at the end."""
    name = f"kit_hostile_{secrets.token_hex(4)}"
    with connected(*address(node), user_of(node, MEMBER)) as member:
        member.create_database(Database(name=name, locationUri=f"/tmp/{name}"))  # noqa: S108 -- in HDFS
        member.create_table(iceberg_table(name, "t", "v1"))
    yield name
    with connected(*address(node), user_of(node, MEMBER)) as member:
        member.drop_database(name, True, True)


def sessions(node: Machine) -> int:
    """Return how many sessions of the database the metastore has for calls."""
    site = ET.fromstring(node.run("cat %s/hive/hive-site.xml", node.variable("lakehouse_config_dir")))
    values = {one.findtext("name"): one.findtext("value") for one in site}
    return int(str(values["datanucleus.connectionPool.maxPoolSize"]))


class Raw:
    """A connection that sends requests as bytes; it connects again where the server has closed it."""

    def __init__(self, where: tuple[str, int], user: str | None) -> None:
        self._where, self._user = where, user
        self._connect()

    def _connect(self) -> None:
        connection = TSocket(*self._where)
        connection.setTimeout(30_000)
        self._transport = TBufferedTransport(connection)
        self._transport.open()
        self._protocol = TBinaryProtocol(self._transport)
        if self._user is not None:
            ThriftHiveMetastore.Client(self._protocol).set_ugi(self._user, [])

    def close(self) -> None:
        self._transport.close()

    def answer(self, call: str, message: bytes) -> str:
        """Send a request; return "done", or the error of the reply."""
        self._transport.write(message)
        self._transport.flush()
        try:
            return self._read(call)
        except (TException, OSError) as error:
            self.close()
            self._connect()
            return f"closed: {error}"

    def _read(self, call: str) -> str:
        _, kind, _ = self._protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(self._protocol)
            self._protocol.readMessageEnd()
            return str(error.message)
        reply = getattr(ThriftHiveMetastore, f"{call}_result")()
        reply.read(self._protocol)
        self._protocol.readMessageEnd()
        errors = [value for value in vars(reply).values() if isinstance(value, TException)]
        return str(getattr(errors[0], "message", errors[0])) if errors else "done"


def contents(machine: Machine) -> set[tuple[str, str]]:
    """Return every row of the catalog, with its table, but for counters."""
    query = "select tablename from pg_tables where schemaname = 'public' and tablename not in %s order by 1"
    tables = sql(machine, query % COUNTERS).split()
    # Names of the server's own list.
    queries = (f"select '{name}' || chr(9) || row_to_json(t)::text from \"{name}\" t" for name in tables)  # noqa: S608
    rows = sql(machine, " union all ".join(queries)).splitlines()
    return {(table, row) for table, _, row in (line.partition("\t") for line in rows)}


def remove(machine: Machine, rows: set[tuple[str, str]]) -> None:
    """Remove rows of the catalog, those that others refer to last."""
    left = sorted(rows)
    for _ in rows:
        for table, row in left:
            value = row.replace("'", "''")
            # A row that another one refers to stays for the next turn.
            statement = f"delete from \"{table}\" t where row_to_json(t)::text = '{value}'"  # noqa: S608
            sql(machine, f"do $$ begin {statement}; exception when foreign_key_violation then null; end $$")
        left = sorted(rows & contents(machine)) if left else []
    assert left == []


@pytest.mark.parametrize("party", [*STRANGERS, MEMBER])
def test_no_string_of_a_request_becomes_sql(
    node: Machine, database_host: Machine, namenode: NameNode, party: str
) -> None:
    """A quote, a backslash, a control character and a NUL, in every string field of every call."""
    path = database_host.run("ls /var/log/postgresql/postgresql-*-main.log")
    size = int(database_host.run("stat -c %%s %s", path))
    before = contents(database_host)
    prefix, unanswered = f"kit_hostile_{secrets.token_hex(4)}", []
    raw = Raw(address(node), user_of(node, party))
    for call in hostile.calls():
        # The first connects, the second disconnects.
        for field in hostile.string_fields(call) if call not in {"set_ugi", "shutdown"} else ():
            for payload in PAYLOADS:
                # Hive tries for twenty seconds to make a resource plan that is there.
                harmless = f"{prefix}_{secrets.token_hex(4)}"
                answer = raw.answer(call, hostile.request(call, harmless, field, payload))
                if answer.startswith("Invalid method name"):
                    break
                if "timeout" in answer:
                    unanswered.append((call, field, payload))
    raw.close()
    made = contents(database_host) - before
    remove(database_host, made)
    home = f"/user/{user_of(node, party)}"
    for folder in namenode.names(home) if made else ():
        if folder.startswith(prefix):
            namenode.remove(f"{home}/{folder}")
    assert database_host.run("tail -c +%s %s | grep -aE %s || true", size + 1, path, COMPLAINTS) == ""
    assert unanswered == []
    assert contents(database_host) == before
    assert party == MEMBER or made == set()


@pytest.mark.parametrize("name", ["x'||(select current_user)||'", "a\\b", "a\x01b", "", "é", "x" * 200])
def test_a_user_name_that_is_no_account_is_refused(node: Machine, name: str) -> None:
    with connected(*address(node), None) as client, pytest.raises(TException):
        client.set_ugi(name, [])


@pytest.mark.parametrize("party", STRANGERS)
def test_a_lock_that_stops_writers_needs_the_right_to_write(node: Machine, table: str, party: str) -> None:
    """Also a shared read: a member's commit would wait for it."""
    for kind in (1, 2, 3):  # shared read, shared write, exclusive
        part = LockComponent(type=kind, level=2, dbname=table, tablename="t")
        request = LockRequest(component=[part], user="kit", hostname="kit", agentInfo="kit")
        with connected(*address(node), user_of(node, party)) as client, pytest.raises(TException):
            client.lock(request)
    with connected(*address(node), user_of(node, MEMBER)) as member:
        part = LockComponent(type=3, level=2, dbname=table, tablename="t")
        taken = member.lock(LockRequest(component=[part], user="kit", hostname="kit", agentInfo="kit"))
        member.unlock(UnlockRequest(taken.lockid))
        assert taken.state == 1


@pytest.mark.parametrize("party", STRANGERS)
def test_who_may_not_write_opens_no_transaction(node: Machine, database_host: Machine, party: str) -> None:
    count = 'select count(*) from "txns"'
    before = sql(database_host, count)
    with connected(*address(node), user_of(node, party)) as client, pytest.raises(TException, match=REFUSED):
        client.open_txns(OpenTxnRequest(num_txns=5, user="kit", hostname="kit"))
    assert sql(database_host, count) == before


@pytest.mark.parametrize("party", [READER, MEMBER])
def test_the_ids_of_another_metastore_are_for_the_superuser(node: Machine, table: str, party: str) -> None:
    """With `replPolicy` Hive maps the numbers of a request: what it changes is not what was asked for."""
    policy, theirs = f"{table}.*", 9_000_000_000 + secrets.randbelow(10**6)
    refused = r"superuser|may not write"
    with connected(*address(node), user_of(node, party)) as client:
        with pytest.raises(TException, match=refused):
            client.open_txns(OpenTxnRequest(1, "kit", "kit", "kit", policy, [theirs]))
        with pytest.raises(TException, match=refused):
            client.abort_txn(AbortTxnRequest(theirs, policy))
        with pytest.raises(TException, match=refused):
            client.commit_txn(CommitTxnRequest(theirs, policy))
        with pytest.raises(TException, match=refused):
            client.allocate_table_write_ids(AllocateTableWriteIdsRequest(table, "t", None, policy, []))
        state = ReplTblWriteIdStateRequest("", "kit", "kit", table, "t")
        with pytest.raises(TException, match=refused):
            client.repl_tbl_writeid_state(state)


def test_a_transaction_of_somebody_else_gets_no_write_id(node: Machine, table: str) -> None:
    superuser = node.variable("lakehouse_users")["hdfs"]
    with (
        connected(*address(node), superuser) as other,
        connected(*address(node), user_of(node, MEMBER)) as member,
    ):
        ids = other.open_txns(OpenTxnRequest(1, "kit", "kit")).txn_ids
        with pytest.raises(TException, match="belongs to"):
            member.allocate_table_write_ids(AllocateTableWriteIdsRequest(table, "t", ids))
        other.abort_txns(AbortTxnsRequest(ids))


def test_ten_thousand_transactions_delay_nobody_and_leave_nothing(
    node: Machine, database_host: Machine, table: str
) -> None:
    """Half are aborted by their client; the client of the other half disappears."""
    ids: list[int] = []
    with connected(*address(node), user_of(node, MEMBER)) as member:
        while len(ids) < MANY:
            request = OpenTxnRequest(num_txns=BATCH, user="kit", hostname="kit-hostile")
            ids += member.open_txns(request).txn_ids
        with connected(*address(node), user_of(node, MEMBER)) as other:
            part = LockComponent(type=3, level=2, dbname=table, tablename="t")
            taken = other.lock(LockRequest(component=[part], user="kit", hostname="kit", agentInfo="kit"))
            other.unlock(UnlockRequest(taken.lockid))
        member.abort_txns(AbortTxnsRequest(ids[: MANY // 2]))
    rows = "select count(*) from \"txns\" where txn_host = 'kit-hostile'"
    # Ten minutes pass for those whose client has gone.
    sql(database_host, 'update "txns" set txn_last_heartbeat = txn_last_heartbeat - 600000')
    wait_for(
        "the housekeeper", lambda: sql(database_host, rows) == "0", seconds=HOUSEKEEPING_SECONDS, pause=1
    )


@pytest.mark.parametrize("party", STRANGERS)
def test_truncate_leaves_the_files_of_who_may_not_write(
    node: Machine, namenode: NameNode, table: str, party: str
) -> None:
    """Hive deletes files before it asks its store; the daemon itself may write nothing in HDFS."""
    folder = f"/tmp/{table}/t"  # noqa: S108 -- in HDFS
    member = user_of(node, MEMBER)
    namenode.webhdfs("PUT", "MKDIRS", f"{folder}/part", member, permission="775")
    with connected(*address(node), user_of(node, party)) as client, pytest.raises(TException):
        client.truncate_table(table, "t", None)
    assert namenode.webhdfs("GET", "GETFILESTATUS", f"{folder}/part", member)


@pytest.mark.parametrize("party", STRANGERS)
def test_an_event_about_a_table_needs_the_right_to_write(node: Machine, table: str, party: str) -> None:
    event = FireEventRequest(
        successful=True, dbName=table, tableName="t",
        data=FireEventRequestData(insertData=InsertEventRequestData(filesAdded=["f"])),
    )  # fmt: skip
    with connected(*address(node), user_of(node, party)) as client, pytest.raises(TException, match=REFUSED):
        client.fire_listener_event(event)


@pytest.mark.parametrize("place", ["file:///tmp/kit", "file:/etc/hive", "ftp://host/x", "webhdfs://host/x"])
def test_a_location_on_another_file_system_is_refused(node: Machine, table: str, place: str) -> None:
    """On the metastore's host the daemon's account would read and delete for every client."""
    made = iceberg_table(table, "elsewhere", "v1")
    made.sd.location = place
    for user in (user_of(node, MEMBER), node.variable("lakehouse_users")["hdfs"]):
        with connected(*address(node), user) as client, pytest.raises(MetaException, match="file system"):
            client.create_table(made)


@pytest.mark.parametrize("key", ["METADATA_LOCATION", "Previous_Metadata_Location", "Table_Type"])
def test_a_property_that_only_looks_like_icebergs_is_refused(node: Machine, table: str, key: str) -> None:
    made = iceberg_table(table, "lookalike", "v1")
    made.parameters[key] = "v2"
    with connected(*address(node), user_of(node, MEMBER)) as member:
        with pytest.raises(MetaException, match="no meaning in this spelling"):
            member.create_table(made)
        other = member.get_table(table, "t")
        other.parameters[key] = "v2"
        with pytest.raises(MetaException, match="no meaning in this spelling"):
            member.alter_table(table, "t", other)


@pytest.mark.parametrize("key", ["path", "PATH"])
def test_a_place_is_one_in_every_spelling_that_spark_reads(node: Machine, table: str, key: str) -> None:
    made = iceberg_table(table, "elsewhere", "v1")
    made.sd.serdeInfo.parameters[key] = f"/{table}"
    may_not = pytest.raises(MetaException, match="may not write")
    with connected(*address(node), user_of(node, MEMBER)) as member, may_not:
        member.create_table(made)


@pytest.mark.parametrize("party", [ANONYMOUS, MEMBER])
@pytest.mark.parametrize(
    "word", ["env.PATH", "env.HADOOP_USER_NAME", "user.name", "javax.jdo.option.ConnectionPassword"]
)
def test_configuration_expands_nothing_for_a_client(node: Machine, party: str, word: str) -> None:
    """Neither what the client puts there, nor what the daemon has."""
    key = "metastore.partition.name.whitelist.pattern"
    with connected(*address(node), user_of(node, party)) as client:
        with pytest.raises(MetaException):
            client.setMetaConf(key, f"${{{word}}}")
        assert client.getMetaConf(key) == ""
        assert client.get_config_value(f"hive.${{{word}}}", f"${{{word}}}") == f"${{{word}}}"


def test_no_key_of_the_configuration_tells_the_password(node: Machine) -> None:
    password = node.variable("lakehouse_database")["password"]
    config = f"{node.variable('lakehouse_config_dir')}/hive/hive-site.xml"
    keys = node.run("grep -o '<name>[^<]*' %s | cut -d'>' -f2", config).split()
    with connected(*address(node), None) as client:
        values = [client.get_config_value(key, "") for key in keys if key.startswith(("hive", "metastore"))]
        with pytest.raises(TException):
            client.get_config_value("javax.jdo.option.ConnectionPassword", "")
    assert password not in " ".join(values)


@pytest.mark.parametrize(("first", "last"), [(10**12, 10**12 + 2**31 - 3), (1, 10_001), (5, 1), (-1, 3)])
@pytest.mark.parametrize("party", [OUTSIDER, MEMBER])
def test_a_range_of_transactions_that_nobody_opened_is_refused(
    node: Machine, party: str, first: int, last: int
) -> None:
    """Hive makes a list of all its numbers before it looks for one."""
    with connected(*address(node), user_of(node, party)) as client, pytest.raises(TException, match=REFUSED):
        client.heartbeat_txn_range(HeartbeatTxnRangeRequest(first, last))
    with connected(*address(node), None) as client:
        assert "default" in client.get_all_databases()


def test_a_setting_of_a_connection_is_short(node: Machine) -> None:
    with connected(*address(node), "nobody") as client, pytest.raises(MetaException, match="longer than"):
        client.setMetaConf("metastore.partition.name.whitelist.pattern", "a" * 1_000_000)


def test_options_of_strangers_do_not_fill_the_memory(node: Machine) -> None:
    with connected(*address(node), user_of(node, MEMBER)) as client, pytest.raises(TException):
        client.setOption("kit", "x")


def string(length: int, content: bytes = b"") -> bytes:
    return struct.pack(">i", length) + content


FRAMES = {
    "noise": bytes(range(256)) * 40,
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a name of negative length": CALL + string(-1),
    "a name of two gigabytes": CALL + string(2**31 - 1),
    "a string that is announced and does not come": CALL
    + string(12, b"get_database")
    + struct.pack(">i", 0)
    + b"\x0b\x00\x01"
    + string(90_000_000),
    "half a message": CALL + string(12, b"get_data"),
}


def nested(depth: int) -> bytes:
    """Return a request with structs in structs in a field that no call has."""
    return CALL + string(12, b"get_database") + struct.pack(">i", 0) + b"\x0c\x7f\xff" * depth


def long_list(call: bytes, size: int) -> bytes:
    """Return the begin of a request whose second field is a list of so many strings."""
    header = CALL + string(len(call), call) + struct.pack(">i", 0)
    return header + b"\x0b\x00\x01" + string(1, b"d") + b"\x0f\x00\x02\x0b" + struct.pack(">i", size)


def empty_structs(size: int) -> bytes:
    """Return a request with a list of structs that are a byte each, and a hundred on the heap."""
    header = CALL + string(14, b"add_partitions") + struct.pack(">i", 0)
    return header + b"\x0f\x00\x01\x0c" + struct.pack(">i", size) + bytes(size + 1)


def long_string(size: int) -> bytes:
    """Return a request with a string that takes two bytes a letter on the heap."""
    header = CALL + string(11, b"getMetaConf") + struct.pack(">i", 0) + b"\x0b\x00\x01"
    return header + string(size, b"a" * (size - 2) + "Ā".encode()) + b"\x00"


@pytest.mark.parametrize(
    "frame",
    [
        *(pytest.param(frame, id=name) for name, frame in FRAMES.items()),
        pytest.param(nested(100_000), id="deeply nested"),
        pytest.param(long_list(b"get_table_objects_by_name", 100_000_000), id="a list of many"),
        pytest.param(empty_structs(8_000_000), id="many empty structs"),
        pytest.param(long_string(90_000_000), id="a long string"),
        pytest.param(long_list(b"get_table_objects_by_name", -5), id="a list of negative size"),
    ],
)
def test_frames_that_are_none_end_their_connection_alone(node: Machine, frame: bytes) -> None:
    """Many at once: what they announce together is a multiple of the daemon's heap."""
    pid = node.run("systemctl show --property=MainPID --value hive-metastore")
    sockets = []
    try:
        for _ in range(50 if len(frame) < 1 << 20 else 5):
            one = socket.create_connection(address(node), timeout=10)
            sockets.append(one)
            with suppress(OSError):  # it has closed already
                one.sendall(frame)
        with connected(*address(node), None) as client:
            assert "default" in client.get_all_databases()
    finally:
        for one in sockets:
            one.close()
    with connected(*address(node), None) as client:
        assert "default" in client.get_all_databases()
    assert node.run("systemctl show --property=MainPID --value hive-metastore") == pid


@pytest.mark.parametrize("party", [ANONYMOUS, OUTSIDER])
def test_idle_connections_keep_nobody_out(node: Machine, party: str) -> None:
    """A thread serves a connection: those of a stranger end for others, and a member's idle one stays."""
    with connected(*address(node), user_of(node, MEMBER)) as early, ExitStack() as strangers:
        early.get_all_databases()
        for _ in range(CONNECTIONS):
            if party == ANONYMOUS:
                strangers.enter_context(socket.create_connection(address(node), timeout=30))
            else:
                strangers.enter_context(connected(*address(node), user_of(node, party)))
        with connected(*address(node), user_of(node, MEMBER)) as late:
            assert "default" in late.get_all_databases()
        if party == ANONYMOUS:
            assert "default" in early.get_all_databases()


def test_questions_without_a_name_leave_sessions_of_the_database(
    node: Machine, database_host: Machine
) -> None:
    def ask() -> None:
        with connected(*address(node), None) as client:
            client.get_functions("default", "*")

    with held(database_host, "FUNCS", "access exclusive"):
        threads = [in_thread(ask)[0] for _ in range(QUESTIONS)]
        wait_for("the questions", lambda: waiting(database_host) >= 2, seconds=60)
        for _ in range(3):
            with connected(*address(node), user_of(node, MEMBER)) as member:
                assert "default" in member.get_all_databases()
    for thread in threads:
        thread.join(60)


def test_a_long_pattern_is_refused(node: Machine) -> None:
    """Each alternative is a condition: forty questions of three thousand ended the daemon by its memory."""
    pattern = "|".join(f"*a{number}*b*" for number in range(3_000))
    with connected(*address(node), None) as client:
        with pytest.raises(MetaException, match="ask in parts"):
            client.get_databases(pattern)
        with pytest.raises(MetaException, match="ask in parts"):
            client.get_tables("default", pattern)
        with pytest.raises(MetaException, match="ask in parts"):
            client.get_table_meta("*", pattern, [])


@pytest.mark.parametrize("party", STRANGERS)
def test_a_location_of_a_stranger_s_own_host_is_not_asked(node: Machine, party: str) -> None:
    """What answers there can announce more than the heap holds: three such calls ended the daemon."""
    with socket.create_connection(address(node), timeout=30) as one:
        here = one.getsockname()[0]
    with (
        socket.create_server((here, 0)) as server,
        connected(*address(node), user_of(node, party)) as client,
    ):
        place = f"hdfs://{here}:{server.getsockname()[1]}/x"
        with pytest.raises(MetaException, match=ELSEWHERE):
            client.create_database(Database(name=f"kit_hostile_{secrets.token_hex(4)}", locationUri=place))
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_list_of_more_names_than_hive_can_look_up_is_refused(node: Machine) -> None:
    """Loops of Hive take the square of it: five such calls held all sessions of clients without a name."""
    names = [f"a={number}" for number in range(MANY + 1)]
    with connected(*address(node), None) as client:
        with pytest.raises(MetaException, match="holds more than 10000 names; ask in parts"):
            client.get_partitions_by_names("default", "t", names)
        with pytest.raises(TApplicationException, match="holds more than 10000 names; ask in parts"):
            client.get_table_objects_by_name("default", names)
        assert client.get_table_objects_by_name("default", names[:MANY]) == []


@pytest.mark.parametrize(
    "condition", ["(" * 100_000, " or ".join(['hive_filter_field_owner__ = "x"'] * MANY)]
)
def test_a_condition_of_too_many_parts_is_refused_in_words(node: Machine, condition: str) -> None:
    with connected(*address(node), None) as client:
        with pytest.raises(MetaException, match="too many parts; ask in parts"):
            client.get_table_names_by_filter("default", condition, -1)
        assert "default" in client.get_all_databases()


def test_one_host_leaves_sessions_whatever_names_it_sends(node: Machine, database_host: Machine) -> None:
    def ask(user: str | None) -> None:
        with connected(*address(node), user) as client:
            client.get_functions("default", "*")

    outsider, pool = user_of(node, OUTSIDER), sessions(node)
    with held(database_host, "FUNCS", "access exclusive"):
        threads = [in_thread(lambda: ask(outsider))[0] for _ in range(QUESTIONS)]
        wait_for("the questions with a name", lambda: waiting(database_host) >= pool - 2, seconds=60)
        threads += [in_thread(lambda: ask(None))[0] for _ in range(QUESTIONS)]
        # A client without a name, of this host, has its turn after those.
        late, _ = in_thread(lambda: ask(None))
        late.join(3)
        assert waiting(database_host) == pool - 2
    for thread in [*threads, late]:
        thread.join(60)


def test_requests_that_never_end_keep_no_others_out(node: Machine) -> None:
    """Lists that are announced and do not come hold all of the heap that requests may have."""
    names = [f"a_table_of_a_long_name_{number}" for number in range(5_000)]
    with ExitStack() as strangers:
        for size in (2**power for power in range(20, 4, -1)):
            for _ in range(3):
                one = strangers.enter_context(socket.create_connection(address(node), timeout=30))
                one.sendall(long_list(b"get_table_objects_by_name", size))
        with connected(*address(node), user_of(node, MEMBER)) as member:
            assert member.get_table_objects_by_name("default", names) == []


@pytest.fixture
def large_table(node: Machine, database_host: Machine, table: str) -> Iterator[str]:
    """The database of a table `large`, whose partitions together take more of the heap than answers may."""
    made = iceberg_table(table, "large", "v1")
    made.parameters, made.partitionKeys = {"EXTERNAL": "TRUE"}, [FieldSchema("day", "string", None)]
    with connected(*address(node), user_of(node, MEMBER)) as member:
        member.create_table(made)
    heap = re.search(r"-Xmx(\d+)m", node.run("systemctl cat hive-metastore"))
    assert heap is not None
    with partitions(database_host, table, "large", int(heap.group(1)) * 2**20 // 2):
        yield table


@pytest.mark.longdrill
def test_answers_that_would_fill_the_heap_are_refused_and_others_come(
    node: Machine, large_table: str
) -> None:
    """Five such calls of a client without a name ended the daemon."""
    refusals: list[str] = []

    def ask() -> None:
        with connected(*address(node), None) as client, pytest.raises(MetaException) as refusal:
            client.get_partitions(large_table, "large", -1)
        refusals.append(refusal.value.message)

    pid = node.run("systemctl show --property=MainPID --value hive-metastore")
    asking = [in_thread(ask) for _ in range(QUESTIONERS)]
    with connected(*address(node), user_of(node, MEMBER)) as member:
        names = member.get_partition_names(large_table, "large", 20)
        assert len(member.get_partitions_by_names(large_table, "large", names)) == len(names) > 0
    for thread, _ in asking:
        thread.join(60)
    assert [error for _, errors in asking for error in errors] == []
    assert len(refusals) == QUESTIONERS
    assert {re.sub(r"\d+ MiB", "N MiB", refusal) for refusal in refusals} <= {TOO_LARGE, OTHERS_FIRST}
    assert any("would hold more than" in refusal for refusal in refusals)
    assert node.run("systemctl show --property=MainPID --value hive-metastore") == pid
