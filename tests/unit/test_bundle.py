"""What a bundle takes in, what it takes out, and how large it becomes."""

from __future__ import annotations

import base64
import getpass
import io
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape, quoteattr

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from lakehouse.commands import support_bundle
from lakehouse.model.inventory import Host
from lakehouse.support_bundle import archive, collector, items, mask, secret_spans
from lakehouse.support_bundle.mask import MASK, Masker

# With letters that each form writes in another way.
SECRET = "pa:55 w0rd/+é'x\"&"  # noqa: S105 -- made up
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
    # The addresses of Alertmanager's receivers have tokens in them.
    expected = own | {"lakehouse-monitoring/prometheus.yml", "lakehouse-monitoring/own-rules.yml"}
    theirs = {
        "monitoring/alertmanager.yml",
        "shadow",
        "ssh/ssh_host_ed25519_key",
        "netplan/50-wifi.yaml",
        "ssl/private/server.key",
    }
    for name in expected | theirs:
        (tmp_path / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "etc" / name).touch()

    host = Host("a", "", frozenset(), {"lakehouse_config_dir": "/etc"})
    patterns = [one.removeprefix("/") for one in items.configuration(host, ())]
    found = {path for one in patterns for path in tmp_path.glob(one) if path.is_file()}
    assert {str(path.relative_to(tmp_path / "etc")) for path in found} == expected


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
        "password_encryption = scram-sha-256",
        'FATAL:  password authentication failed for user "hive"',
        "host all all 0.0.0.0/0 password  # by password, for all",
        "WARN  Client: Basic authentication with a token was refused",
        "hive.cluster.delegation.token.store.class=org.apache.Store",
        "<property><name>a.token.renew</name><value>7</value></property>",
        '{"tokens_left": 3, "credentialProvider": "x", "password": null}',
        "docker run -u 1000:1000 image",
        "at org.eclipse.jetty.client.HttpClient$1$Resolver.run(HttpClient.java:574)",
        "PWD=/root/somewhere OLDPWD=/home/somewhere",
        "http://a:8080/path?x=a@b and http://a:8080",
        "ssl.privateKey=/etc/ssl/private/server",
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


# -- Whatever letters a secret has, in each form in which one is written --


def of_properties(secret: str) -> str:
    escaped = "".join(f"\\{letter}" if letter in "\\:=#! " else letter for letter in secret)
    return f"a=b\n connection-password = {escaped}\nc=d\n"


def folded(secret: str) -> str:
    """As a block of YAML, a line for each half."""
    half = len(secret) // 2
    return f"a: b\ntop:\n  - password: |-\n      {secret[:half]}\n      {secret[half:]}\n    user: ada\n"


def xml(secret: str, shape: str) -> str:
    return f"<configuration>{shape.format(escape(secret))}</configuration>\n"


def one_of_many(secret: str) -> str:
    return json.dumps({"a": [{"credentials": {"user": "ada", "word": secret}}, 7], "signing-key": secret})


NAMED = "<name>a.secret.key</name>"
FORMS: dict[str, tuple[str, Callable[[str], str]]] = {
    "properties": ("x.properties", of_properties),
    "as they are": ("x.properties", lambda secret: f"a=b\nconnection-password={secret}\nc=d\n"),
    "Spark's": ("spark-defaults.conf", lambda secret: f"a b\nspark.a.Password   {secret}\nc d\n"),
    "a remark": ("x.conf", lambda secret: f"# fernet_key = {secret}\n"),
    "YAML": ("x.yml", lambda secret: yaml.safe_dump({"a": {"fernet_key": secret, "b": [1]}})),
    "YAML as it is": ("x.yaml", lambda secret: yaml.safe_dump([{"pwd": secret}], allow_unicode=True)),
    "YAML in quotes": ("x.yml", lambda secret: yaml.safe_dump([{"secret": secret}], default_style='"')),
    "YAML by name": ("x.yml", lambda secret: yaml.safe_dump([{"name": "A_TOKEN", "value": secret}])),
    "YAML of several": ("x.yml", lambda secret: yaml.safe_dump({"credentials": {"a": ["b", secret]}})),
    "a block": ("x.yml", folded),
    "a block in a log": ("x.log", folded),
    "a block of a template": ("x.yml", lambda secret: f"a: {{{{ b }}}}\n{folded(secret)}"),
    "Hadoop": ("x.xml", lambda secret: xml(secret, f"<property>{NAMED}<value>{{}}</value></property>")),
    "Hadoop, final": ("x.xml", lambda secret: xml(
        secret, f"<property>{NAMED}<final>true</final>\n <value>{{}}</value></property>")),
    "Hadoop, value first": ("x.xml", lambda secret: xml(
        secret, f"<property><value>{{}}</value>\n{NAMED}</property>")),
    "Hadoop, cut off": ("x.xml", lambda secret: f"<value>{escape(secret)}</value></property>\n"),
    "an element": ("x.xml", lambda secret: xml(secret, "<a><password>{}</password></a>")),
    "elements": ("x.log", lambda secret: xml(secret, "<credentials type='x'><a/><b>{}</b></credentials>")),
    "an attribute": ("x.xml", lambda secret: f"<user name='ada' password={quoteattr(secret)}/>"),
    "CDATA": ("x.xml", lambda secret: f"<password><![CDATA[{secret}]]></password>"),
    "JSON": ("x.json", lambda secret: json.dumps({"user": "ada", "password": secret, "more": [1]})),
    "JSON as it is": ("x.log", lambda secret: f"got {json.dumps({'token': secret}, ensure_ascii=False)}"),
    "JSON, nested": ("x.json", one_of_many),
    "JSON by name": ("x.json", lambda secret: json.dumps([{"key": "s3.secret-key", "value": secret}])),
    "JSON of pairs": ("x.json", lambda secret: json.dumps({"a": [["spark.a.password", secret]]}, indent=1)),
    "JSON in JSON": ("x.log", lambda secret: json.dumps({"a": json.dumps({"password": secret, "b": 1})})),
    "a shell's word": ("x.log", lambda secret: f"+ keytool -keypass {shlex.quote(secret)} -alias a"),
    "an option": ("x.log", lambda secret: f"+ tool --auth-token={shlex.quote(secret)} -v"),
    "a user": ("x.log", lambda secret: f"+ curl -u {shlex.quote(f'ann:{secret}')} http://a"),
    "a list of words": ("x.log", lambda secret: f"run {json.dumps(['tool', '--password', secret, '-v'])}"),
    "Python's list": ("x.log", lambda secret: f"run {['tool', '--password', secret]!r}"),
    "Python's dict": ("x.log", lambda secret: f"got {({'user': 'ada', 'password': secret})!r}"),
    "an assignment": ("x.log", lambda secret: f"+ PGPASSWORD={shlex.quote(secret)} psql -c 'select 1'"),
    "an environment": ("x.service", lambda secret: f'Environment={systemd(f"A_PASSWORD={secret}")} "B=c"\n'),
    "a URL": ("x.log", lambda secret: f"to postgresql://ann:{quote(secret, safe='')}@db:5432/x?a=b now"),
    "a parameter": ("x.properties", lambda secret: f"url=jdbc:x://db/x?password={quote_plus(secret)}&ssl=true\n"),
    "SQL": ("x.log", lambda secret: "ALTER ROLE a PASSWORD '{}' LOGIN;".format(secret.replace("'", "''"))),
    "a file of passwords": (".pgpass", lambda secret: "db:5432:*:ada:{}\n".format(
        secret.replace("\\", "\\\\").replace(":", "\\:"))),
}  # fmt: skip
PRINTABLE = st.text(
    st.characters(categories=["L", "N", "P", "S"], include_characters=" "), min_size=8, max_size=20
).filter(lambda text: text == text.strip() and not mask._HARMLESS.fullmatch(text))


def systemd(text: str) -> str:
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def pieces(text: str) -> set[str]:
    """Each four letters of a text: who has them has begun."""
    return {text[at : at + 4] for at in range(len(text) - 3)}


@pytest.mark.parametrize("form", FORMS)
@given(secret=PRINTABLE)
def test_no_letter_of_a_secret_is_left_in_any_form(form: str, secret: str) -> None:
    path, write = FORMS[form]
    assume(not (form == "CDATA" and "]]>" in secret))
    # Between properties that are written as they are, a backslash at the end is another line.
    assume(not (form in {"as they are", "Spark's", "a remark"} and secret.endswith("\\")))
    half = len(secret) // 2
    assume("block" not in form or all(part.strip() == part for part in (secret[:half], secret[half:])))
    masker = Masker()
    left = masker.text(path, write(secret))
    around = pieces(write("x" * 8)) | pieces(MASK) | pieces(f'"{MASK}"')
    assert pieces(secret) & pieces(left) <= around, left
    assert masker.count


@pytest.mark.parametrize("kind", ["1", "5", "6", "y", "2b", "argon2id"])
def test_the_hash_of_a_password_is_masked(kind: str) -> None:
    assert Masker().text("x.log", f"root:${kind}$salt.v/a$Xq7hunter2:19000:0:\n") == f"root:{MASK}:19000:0:\n"


def test_what_stands_around_a_secret_stays_and_its_format_is_whole() -> None:
    masker = Masker()
    document = {"user": "ada", "password": "a;b", "more": [1, None]}
    assert json.loads(masker.text("x.json", json.dumps(document))) == document | {"password": MASK}
    written = yaml.safe_dump(document)
    assert yaml.safe_load(masker.text("x.yml", written)) == document | {"password": MASK}
    url = "a=jdbc:postgresql://db/x?user=a&password=a,b&ssl=true\n"
    assert masker.text("x.properties", url) == f"a=jdbc:postgresql://db/x?user=a&password={MASK}&ssl=true\n"


def test_what_a_vault_has_encrypted_is_no_use_to_a_helper() -> None:
    text = "a: !vault |\n  $ANSIBLE_VAULT;1.1;AES256\n  616263646566\nb: c\n"
    assert Masker().text("x.yml", text) == f'a: "{MASK}"\nb: c\n'
    assert Masker().text("vault.yml", "$ANSIBLE_VAULT;1.1;AES256\n616263\n") == MASK


def test_the_inventory_is_what_ansible_reads_of_it(tmp_path: Path) -> None:
    for name in ("hosts.yml", "vault-password", "id_ed25519", "group_vars/all/vault.yml", "host_vars/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a: b\n")
    names = {"inventory/hosts.yml", "inventory/group_vars/all/vault.yml", "inventory/host_vars/a.yml"}
    assert dict(support_bundle.inventory_files(tmp_path)) == dict.fromkeys(names, "a: b\n")
    assert [name for name, _ in support_bundle.inventory_files(tmp_path / "hosts.yml")][:1] == [
        "inventory/hosts.yml"
    ]


def test_a_name_of_the_specs_is_one_of_a_secret() -> None:
    assert "pearl" not in Masker(names={"trino_secrets"}).text("x.yml", "trino_secrets: {A: pearl}\n")


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
        "shell": {"machine/word.txt": "echo word; exit 4"},
        "files": {getpass.getuser(): [f"{tmp_path}/*"]}, "threads": [],
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
    with archive.create(path, limit) as bundle:
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
    with pytest.raises(KeyboardInterrupt), archive.create(path, 1 << 20):
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_a_very_long_line_is_cut_before_it_is_searched() -> None:
    """A client of a service decides how long a line of its log is; patterns take the square of that."""
    line = f"INFO password=abc123 {'x' * 8168}abc1245 {'x' * 100_000}"
    masked = Masker(["abc1245"]).text("files/var/log/a.log", f"{line}\nnext\n")
    assert "abc1" not in masked
    assert re.search(r"letters of this line are left out: \d+\)\nnext\n\Z", masked)
    assert len(masked) < 10_000


def test_what_lies_in_a_value_is_not_read_again() -> None:
    """Each pair of an open quote would read all of the line."""
    asked: list[str] = []

    def is_secret(name: str, _: str) -> bool:
        asked.append(name)
        return True

    assert len(list(secret_spans.of_words('"token":"a' * 500, is_secret))) == 1
    assert len(asked) == 2
    asked.clear()
    assert len(list(secret_spans.of_lines("a.properties", "password=a\\\n" * 500, is_secret))) == 1
    assert len(asked) == 1


@pytest.mark.parametrize(
    "deep", ["- " * 40_000, "[" * 40_000, "{a: " * 40_000, "a:\n" + "- \n" * 3 + "? " * 40_000]
)
def test_a_document_that_nests_without_end_ends_no_process(deep: str) -> None:
    with pytest.raises(yaml.YAMLError):
        list(secret_spans.of_yaml(deep, lambda *_: False))
    assert "abc123" not in Masker().text("a.yml", f"password: abc123\nb: {deep}")
