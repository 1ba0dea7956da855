"""What a bundle takes in, what it takes out, and how large it becomes."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from lakehouse.inventory import Host
from ops.bundle import archive, collector, items, mask
from ops.bundle.mask import MASK, Masker

# With letters that each form writes in another way.
SECRET = "pa:55 w0rd/+é'x\"&"  # noqa: S105 -- nobody's
FAKE = "Xq7-hunter2-Zz"


def test_a_known_secret_is_found_in_every_form() -> None:
    user = base64.b64encode(f"ada:{SECRET}".encode()).decode()
    inside = [base64.b64encode(f"{'u' * size}:{SECRET}:more".encode()).decode() for size in range(3)]
    forms = [
        SECRET, quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET), json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False), SECRET.replace("&", "&amp;"), SECRET.encode().hex(),
        base64.b64encode(SECRET.encode()).decode(), base64.urlsafe_b64encode(SECRET.encode()).decode(),
        quote(SECRET, safe="").lower(),
    ]  # fmt: skip
    masker = Masker([SECRET])
    for form in forms:
        assert masker.text("log", f"before {form} after") in {
            f"before {MASK} after",
            f'before "{MASK}" after',
        }
    for coded in (user, *inside):
        left = masker.text("log", f"token={coded[:2]} {coded}")
        assert MASK in left
        # Of the secret at most the letters that it shares with its neighbours.
        assert base64.b64encode(SECRET.encode()).decode()[4:12] not in left
        assert len(max(left.replace(MASK, " ").split(), key=len)) < len(coded) - len(SECRET)


def test_configuration_is_the_kits_own_where_its_folder_is_etc(tmp_path: Path) -> None:
    said = re.compile(r"lakehouse_config_dir \}\}/([\w-]+)")
    roles = Path(__file__).parents[2] / "roles"
    own = {f"{name}/a/b" for file in roles.glob("*/*/*.yml") for name in said.findall(file.read_text())}
    theirs = {"shadow", "ssh/ssh_host_ed25519_key", "netplan/50-wifi.yaml", "ssl/private/server.key"}
    for name in own | theirs:
        (tmp_path / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc" / name).touch()

    host = Host("a", "", frozenset(), {"lakehouse_config_dir": "/etc"})
    patterns = [one.removeprefix("/") for one in items.configuration(host, ())]
    found = {path for one in patterns for path in tmp_path.glob(one) if path.is_file()}
    assert {str(path.relative_to(tmp_path / "etc")) for path in found} == own


@pytest.mark.parametrize(
    "line",
    [
        f"password={FAKE}",
        f"PGPASSWORD={FAKE} psql",
        f"javax.jdo.option.ConnectionPassword: {FAKE}",
        f'{{"password" : "{FAKE}", "user": "ada"}}',
        f'{{\\"password\\":\\"{FAKE}\\"}}',
        f"{{user=ada, password={FAKE}}}",
        f"jdbc:postgresql://db/x?user=a&password={FAKE}&ssl=true",
        f"jdbc:sqlserver://db;user=a;password={FAKE};x=y",
        f"postgresql://ada:{FAKE}@db:5432/x",
        f"<name>fs.s3a.secret.key</name>\n  <value>{FAKE}</value>",
        f"<property><name>ssl.server.keystore.password</name><value>{FAKE}</value></property>",
        f"internal-communication.shared-secret={FAKE}",
        f"Authorization: Basic {FAKE}",
        f"Authorization: Bearer {FAKE}",
        f'"authorization": ["{FAKE}"]',
        f"curl -H 'Authorization: {FAKE}'",
        f"Proxy-Authorization=Negotiate {FAKE}",
        f"Set-Cookie: session={FAKE}; Path=/",
        f"tool --password {FAKE} --verbose",
        f"tool --auth-token={FAKE}",
        f"ALTER ROLE ada PASSWORD '{FAKE}'",
        f"CREATE USER ada IDENTIFIED BY '{FAKE}'",
        f"access_key => '{FAKE}'",
        f"-----BEGIN RSA PRIVATE KEY-----\nMIIE\n{FAKE}\n-----END RSA PRIVATE KEY-----",
        f"-----BEGIN PRIVATE KEY-----\n{FAKE}\n",
        f"{FAKE}\n-----END OPENSSH PRIVATE KEY-----\nnext",
        f"verifier SCRAM-SHA-256$4096:{FAKE}",
        f"a token eyJhbGciOi.{FAKE}.sig",
    ],
)
def test_what_stands_where_secrets_stand_is_masked_whatever_it_is(line: str) -> None:
    masker = Masker()
    assert FAKE not in masker.text("any.log", line)
    assert masker.count


@pytest.mark.parametrize(
    "line",
    [
        "connection-password=${ENV:TRINO_FEDERATION_PASSWORD}",
        "<value>${env.METASTORE_DATABASE_PASSWORD}</value>",
        "password=null",
        "dfs.block.access.token.enable=false",
        "2026-01-01 INFO DataNode: passed 3 blocks to 10.0.0.1:9866",
        "http://namenode:9870/jmx?qry=x@y",
        "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----",
    ],
)
def test_what_is_no_secret_is_left(line: str) -> None:
    masker = Masker()
    assert masker.text("any.log", line) == line
    assert masker.count == 0


@pytest.mark.parametrize(
    ("path", "text", "secrets"),
    [
        ("files/etc/trino/trino.env", 'A="x y"\n# no\nexport B=\'z\'\nC=\\"q\n', {"x y", "z", '"q'}),
        ("files/root/.pgpass", "db:5432:*:ada:a\\:b\n# no\n", {"a:b"}),
        ("files/etc/trino/config.properties", "a=b\n", set()),
    ],
)
def test_files_of_secrets_tell_what_to_look_for_elsewhere(path: str, text: str, secrets: set[str]) -> None:
    assert mask.values(path, text) == secrets
    left = Masker().text(path, text)
    assert [one for one in secrets if len(one) > 1 and one in left] == []


def test_a_store_of_keys_is_masked_whole() -> None:
    assert Masker().text("files/etc/x/server.p12", "\x00\x01binary") == MASK


def test_a_text_that_is_too_large_is_cut_at_a_line() -> None:
    assert collector.bounded(b"one\ntwo\nthree\n", 9, end=True) == b"three\n"
    assert collector.bounded(b"one\ntwo\nthree\n", 9, end=False) == b"one\ntwo\n"
    assert collector.bounded(b"short", 9, end=True) == b"short"


def test_a_host_sends_what_is_asked_and_says_what_it_had(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("first line\nlast line\n", encoding="utf-8")
    (tmp_path / "link").symlink_to("a.log")
    request = {
        "shell": {"machine/word.txt": "echo word; exit 4"}, "files": [f"{tmp_path}/*"], "threads": [],
        "bytes": 12, "seconds": 5,
    }  # fmt: skip
    sent = io.BytesIO()
    collector.send(request, sent)
    sent.seek(0)
    with tarfile.open(fileobj=sent, mode="r|gz") as found:
        members = {one.name: (found.extractfile(one) or io.BytesIO()).read() for one in found}
    log = f"files{tmp_path}/a.log"
    assert members.pop("index.json") == json.dumps({"machine/word.txt": 14, log: 21}).encode()
    assert members == {"machine/word.txt": b"(exit 4)\n", log: b"last line\n"}


def test_a_process_without_a_handler_is_not_sent_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        monkeypatch.setattr(collector, "shell", lambda *_: f"{process.pid}\n".encode())
        sent: list[int] = []
        monkeypatch.setattr(os, "kill", lambda _, number: sent.append(number))
        assert collector.threads("unit") == b"no JVM that takes the signal\n"
        assert sent == []
        process.kill()
    assert collector._CATCHES_QUIT == 1 << (signal.SIGQUIT - 1)


def test_an_archive_is_its_owners_alone_and_not_larger_than_its_limit(tmp_path: Path) -> None:
    path, limit = tmp_path / "support.tar.gz", 1 << 20
    noise = base64.b64encode(os.urandom(700_000)).decode()
    with archive.written(path, limit) as bundle:
        bundle.add("small", "text\n")
        bundle.add("large", "\n".join(noise[at : at + 100] for at in range(0, len(noise), 100)))
        bundle.add("larger", "\n".join(noise[at : at + 100] for at in range(0, len(noise), 100)))
        bundle.add("late", "x\n" * 100_000)
        bundle.close({})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size <= limit
    with tarfile.open(path) as found:
        contents = json.load(found.extractfile("support/contents.json") or io.BytesIO())
        assert found.getnames()[:2] == ["support/small", "support/large"]
    assert set(contents["cut"]) >= {"larger"}
    assert contents["cut"]["larger"].endswith(f"of {len(noise) + len(noise) // 100} bytes")


def test_a_bundle_that_fails_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "support.tar.gz"
    with pytest.raises(KeyboardInterrupt), archive.written(path, 1 << 20):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
