"""Local nodes without Docker: what is refused, what is planned, what is taken over from this computer."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from lakehouse import run
from lakehouse.artifacts import apt
from lakehouse.errors import LakehouseError
from lakehouse.local.nodes import image, owner, routes
from lakehouse.local.nodes.plan import Container, Facts, Network, Plan, Verb, to_start
from lakehouse.local.nodes.spec import LocalCluster, Node, read
from lakehouse.model.inventory import Host, Inventory, load

SUBNET = IPv4Network("10.9.8.0/24")
ONE = Node("one", IPv4Address("10.9.8.11"), 1024)
TWO = Node("two", IPv4Address("10.9.8.12"), 1024)
SPEC = LocalCluster("toy", SUBNET, "trixie", Path("/state/toy"), (ONE, TWO))
OURS = Network("the Docker network toy", (SUBNET,))


def container(node: Node, state: str = "running", **changes: Any) -> Container:
    return replace(Container(node.name, state, node.address, 1024 << 20), **changes)


def facts(*containers: Container, network: Network | None = OURS, foreign: tuple[Network, ...] = ()) -> Facts:
    return Facts(network, containers, foreign)


def planned(found: Facts) -> Plan:
    return to_start(SPEC, found, "inventory/toy")


PLANS = {
    "nothing is there": (
        facts(network=None),
        Plan((Verb.CREATE,), {"one": (Verb.CREATE,), "two": (Verb.CREATE,)}),
    ),
    "all is as it should be": (facts(container(ONE), container(TWO)), Plan()),
    "the Docker daemon was restarted": (
        facts(container(ONE, "exited"), container(TWO, "exited")),
        Plan((), {"one": (Verb.START,), "two": (Verb.START,)}),
    ),
    "a run was interrupted between create and start": (
        facts(container(ONE), container(TWO, "created")),
        Plan((), {"two": (Verb.REMOVE, Verb.CREATE)}),
    ),
    "a removal was interrupted": (
        facts(container(ONE, "dead"), container(TWO)),
        Plan((), {"one": (Verb.REMOVE, Verb.CREATE)}),
    ),
    "a node is paused": (facts(container(ONE, "paused"), container(TWO)), Plan((), {"one": (Verb.UNPAUSE,)})),
    "a stopped node is to have other memory": (
        facts(container(ONE, "exited", memory=7), container(TWO)),
        Plan((), {"one": (Verb.RESIZE, Verb.START)}),
    ),
    "an empty network has another subnet": (
        facts(network=Network("the Docker network toy", (IPv4Network("10.1.0.0/24"),))),
        Plan((Verb.REMOVE, Verb.CREATE), {"one": (Verb.CREATE,), "two": (Verb.CREATE,)}),
    ),
    "a stranger's network is elsewhere": (
        facts(container(ONE), container(TWO), foreign=(Network("x", (IPv4Network("10.9.9.0/24"),)),)),
        Plan(),
    ),
}


@pytest.mark.parametrize(("found", "plan"), PLANS.values(), ids=PLANS)
def test_plan(found: Facts, plan: Plan) -> None:
    assert planned(found) == plan


REFUSALS = {
    "the subnet is another's": (
        facts(network=None, foreign=(Network("the route through tun0", (IPv4Network("10.9.0.0/16"),)),)),
        "local_nodes_subnet 10.9.8.0/24 is taken: the route through tun0 has 10.9.0.0/16",
    ),
    "the subnet changed under nodes with data": (
        facts(container(ONE), network=Network("toy", (IPv4Network("10.1.0.0/24"),))),
        "the nodes of toy were made in 10.1.0.0/24, not in 10.9.8.0/24",
    ),
    "an address changed": (
        facts(container(ONE, address=IPv4Address("10.9.8.77"))),
        "one was made with the address 10.9.8.77, not 10.9.8.11",
    ),
    "a node that left holds the address": (
        facts(replace(container(ONE), node="zero")),
        "10.9.8.11 still belongs to zero, which has left the inventory",
    ),
}


@pytest.mark.parametrize(("found", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refusal_touches_nothing_and_says_what_to_do(found: Facts, message: str) -> None:
    with pytest.raises(LakehouseError) as refusal:
        planned(found)
    assert refusal.value.message == message
    assert "taken" in message or refusal.value.next_command == "make down INVENTORY=inventory/toy"


MINE, THEIRS = "word-of-mine", "word-of-theirs"


@pytest.mark.parametrize(
    ("word", "mark", "is_ours"),
    [
        (MINE, owner.Mark(MINE, "/elsewhere"), True),
        (MINE, owner.Mark(THEIRS, "/elsewhere"), False),
        (MINE, owner.Mark(THEIRS, str(run.ROOT)), False),
        # The state was lost, or there never was one.
        (None, owner.Mark(THEIRS, str(run.ROOT)), True),
        (None, owner.Mark(THEIRS, "/elsewhere"), False),
        # Made before there were owners.
        (None, owner.Mark(None, "unknown", frozenset({"ssh-ed25519 mine"})), True),
        (None, owner.Mark(None, "unknown", frozenset({"ssh-ed25519 theirs"})), False),
    ],
)
def test_nodes_belong_to_the_checkout_that_made_them(
    tmp_path: Path, word: str | None, mark: owner.Mark, is_ours: bool
) -> None:
    (tmp_path / "id_ed25519.pub").write_text("ssh-ed25519 mine\n")
    if word:
        (tmp_path / "owner").write_text(f"{word}\n")
    spec = replace(SPEC, state=tmp_path)
    if is_ours:
        owner.refuse_strangers(spec, [mark], "inventory/toy")
        return
    with pytest.raises(LakehouseError) as refusal:
        owner.refuse_strangers(spec, [mark], "inventory/toy")
    assert refusal.value.message == (
        f"the nodes of toy belong to another checkout ({mark.checkout}); nothing was touched"
    )
    assert str(refusal.value).endswith(".venv/bin/lakehouse take-over -i inventory/toy toy")


def test_without_a_state_nodes_without_an_owner_are_nobody_s_to_remove(tmp_path: Path) -> None:
    mark = owner.Mark(None, "unknown", frozenset({"ssh-ed25519 theirs", ""}))
    with pytest.raises(LakehouseError, match="belong to another checkout"):
        owner.refuse_strangers(replace(SPEC, state=tmp_path), [mark], "inventory/toy")


LOCAL = {
    "local_nodes_cluster": "toy",
    "local_nodes_subnet": "10.9.8.0/24",
    "local_nodes_suite": "trixie",
    "local_nodes_memory_mb": 1024,
    "local_nodes_state": "/state/toy",
}


def inventory_of(variables: dict[str, Any], name: str = "one", address: str = "10.9.8.11") -> Inventory:
    return Inventory(Path("toy"), (Host(name, address, frozenset(), variables),))


def test_real_machines_are_left_alone() -> None:
    assert read(inventory_of({"ansible_user": "admin"})) is None


def test_the_spec_is_read() -> None:
    assert read(inventory_of(LOCAL)) == LocalCluster("toy", SUBNET, "trixie", Path("/state/toy"), (ONE,))


@pytest.mark.parametrize(
    ("change", "where", "message"),
    [
        ({"local_nodes_cluster": "my_toy"}, {}, "local_nodes_cluster 'my_toy': only lower-case letters"),
        (
            {"local_nodes_subnet": "10.9.8.1/24"},
            {},
            "local_nodes_subnet '10.9.8.1/24' is not an IPv4 network",
        ),
        ({"local_nodes_memory_mb": "4g"}, {}, "one: local_nodes_memory_mb is '4g', not at least 256"),
        ({"local_nodes_state": "/home"}, {}, "local_nodes_state /home: the last directory must be named toy"),
        ({}, {"name": "node_one"}, "node name 'node_one': only lower-case letters"),
        ({}, {"address": "10.9.8.1"}, "one: 10.9.8.1 is not a free address of local_nodes_subnet"),
        ({}, {"address": "10.9.9.1"}, "one: 10.9.9.1 is not a free address of local_nodes_subnet"),
        ({}, {"address": "one.example"}, "one: ansible_host 'one.example' is not an IPv4 address"),
    ],
)
def test_bad_value_is_named(change: dict[str, Any], where: dict[str, str], message: str) -> None:
    with pytest.raises(LakehouseError, match=message.replace(".", r"\.")):
        read(inventory_of(LOCAL | change, **where))


def test_missing_value_is_named() -> None:
    without = {name: value for name, value in LOCAL.items() if name != "local_nodes_suite"}
    with pytest.raises(LakehouseError, match="one: local_nodes_suite is not set"):
        read(inventory_of(without))


def test_values_must_agree() -> None:
    other = Host("two", "10.9.8.12", frozenset(), LOCAL | {"local_nodes_suite": "bookworm"})
    inventory = Inventory(Path("toy"), (*inventory_of(LOCAL).hosts, other))
    with pytest.raises(LakehouseError, match="must be the same on all local nodes: one=trixie, two=bookworm"):
        read(inventory)


def test_nodes_cannot_share_an_address() -> None:
    twin = Host("two", "10.9.8.11", frozenset(), LOCAL)
    with pytest.raises(LakehouseError, match=r"share an address: one=10\.9\.8\.11, two=10\.9\.8\.11"):
        read(Inventory(Path("toy"), (*inventory_of(LOCAL).hosts, twin)))


def test_local_inventory_and_test_inventory_can_run_side_by_side() -> None:
    specs = [read(load(path)) for path in ("inventory/local", "tests/inventory")]
    first, second = (spec for spec in specs if spec)
    assert not first.subnet.overlaps(second.subnet)
    assert first.cluster != second.cluster
    assert not {node.name for node in first.nodes} & {node.name for node in second.nodes}
    assert read(load("inventory/three-node")) is None


def test_inventory_evaluates_a_variable_only_when_asked(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (tmp_path / "hosts.yml").write_text(
        f"all: {{hosts: {{a: {{p: \"{{{{ lookup('password', '{secret}') }}}}\", s: '{{{{ 40 + 2 }}}}'}}}}}}\n"
    )
    (host,) = load(tmp_path / "hosts.yml").hosts
    assert host.variables["s"] == 42
    assert not secret.exists()
    assert host.variables["p"] == secret.read_text().strip()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("all: {hosts: {}}", "names no host"),
        ("all: [", "cannot be read"),
    ],
)
def test_bad_inventory_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    source = tmp_path / "hosts.yml"
    source.write_text(text)
    with pytest.raises(LakehouseError, match=message) as error:
        load(source)
    assert "\n" not in str(error.value)


def test_missing_inventory_is_named(tmp_path: Path) -> None:
    with pytest.raises(LakehouseError, match=r"nowhere does not exist; next: ls"):
        load(tmp_path / "nowhere")


TARGETS = """\
Debian main bookworm http://mirror.example/debian/
Debian contrib bookworm http://mirror.example/debian/
Debian main bookworm-updates http://mirror.example/debian/
Debian main bookworm-security http://mirror.example/security/
Debian main bookworm-backports http://mirror.example/debian/
Vendor main bookworm https://vendor.example/
"""


def test_nodes_use_the_mirrors_of_this_computer() -> None:
    assert apt.derive_sources("trixie", TARGETS) == [
        "deb http://mirror.example/debian/ trixie main",
        "deb http://mirror.example/debian/ trixie-updates main",
        "deb http://mirror.example/security/ trixie-security main",
    ]


def test_another_distribution_has_no_mirror_for_the_nodes() -> None:
    assert apt.derive_sources("trixie", "Ubuntu main noble http://mirror.example/ubuntu/\n") == []


def test_nodes_use_the_proxy_of_this_computer() -> None:
    dump = (
        'Acquire "";\nAcquire::http::Proxy "http://proxy.example:3128";\nAcquire::https::Proxy "";\n'
        'Acquire::http::Proxy::internal.example "DIRECT";\nAcquire::Languages "none";\n'
    )
    assert apt.derive_settings(dump) == [
        'Acquire::http::Proxy "http://proxy.example:3128";',
        'Acquire::http::Proxy::internal.example "DIRECT";',
    ]


def test_a_proxy_is_a_variable_for_a_container() -> None:
    lines = [
        'Acquire::http::Proxy "http://ada:secret@proxy.example:3128";',
        'Acquire::https::Proxy "http://proxy.example:3128/";',
        'Acquire::http::Proxy::internal.example "DIRECT";',
        'Acquire::Check-Date "false";',
    ]
    assert apt.derive_proxies(lines) == {
        "http_proxy": "http://ada:secret@proxy.example:3128",
        "https_proxy": "http://proxy.example:3128/",
    }


def test_no_password_of_a_proxy_stays_in_the_image(tmp_path: Path) -> None:
    kept = 'Acquire::https::Proxy "http://proxy.example:3128";\nAcquire::Check-Date "false";\n'
    left = tmp_path / "etc/apt/apt.conf.d/99mmdebstrap"
    left.parent.mkdir(parents=True)
    left.write_text(f'Acquire::http::Proxy "http://ada:secret@proxy.example:3128";\n{kept}')
    hooks = [word for word in image.command(image.Recipe("trixie", (), (), ())) if "99mmdebstrap" in word]
    # As mmdebstrap runs it.
    for hook in hooks:
        subprocess.run(["sh", "-c", hook.removeprefix("--customize-hook="), "exec", tmp_path], check=True)
    assert left.read_text() == kept


def test_image_is_named_by_what_is_in_it() -> None:
    recipe = image.Recipe("trixie", ("deb http://mirror.example/debian trixie main",), (), ())
    other = image.Recipe("trixie", ("deb http://other.example/debian trixie main",), (), ())
    assert recipe.reference.startswith("lakehouse-node:trixie-")
    assert recipe.reference != other.reference
    assert image.command(recipe)[-3:] == ["trixie", "-", "deb http://mirror.example/debian trixie main"]


def test_routes_are_read_but_for_the_default_and_our_own() -> None:
    table = (
        "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
        "eth0 00000000 0100000A 0003 0 0 0 00000000 0 0 0\n"
        "tun0 0000090A 00000000 0001 0 0 0 0000FFFF 0 0 0\n"
        "br-0123456789ab 00001CAC 00000000 0001 0 0 0 00FFFFFF 0 0 0\n"
    )
    assert routes.parse(table, {"br-0123456789ab"}) == (
        Network("the route through tun0", (IPv4Network("10.9.0.0/16"),)),
    )
