"""Every secret that the argument specs know is checked alike, and none goes into a file that all may read."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from lakehouse import secret_words
from lakehouse.model import specs
from lakehouse.model.inventory import Host
from lakehouse.validation import Level, keylists, overrides, secrets, variables

KNOWN = variables.options(specs.every())
FIT = "sec-hunter2-SECRET"


def paths(path: str, option: variables.Option) -> Iterator[str]:
    """Give the paths of the secrets in an option; SALES is a key of a dict in which each value is one."""
    if option.get("no_log"):
        yield f"{path}.SALES" if option["type"] == "dict" else path
    for key, member in (option.get("options") or {}).items():
        yield from paths(f"{path}.{key}", member)


def setting(path: str, word: str | None) -> dict[str, Any]:
    """Return the variable in which the secret at a path is set, and nothing else."""
    first, *members = path.split(".")
    value: Any = word
    for key in reversed(members):
        value = {key: value}
    return {first: value}


# What the specs mark, and a value in which each stands alone.
MARKED = {path: partial(setting, path) for name, option in KNOWN.items() for path in paths(name, option)}


def a_host(**settings: Any) -> Host:
    """Build a host with these variables."""
    return Host("n1", "10.0.0.11", frozenset(), settings)


def exposed(**settings: Any) -> list[str]:
    """Return the lines about secrets in files that all may read."""
    return list(map(str, secrets.exposed(a_host(**settings), KNOWN)))


def test_the_specs_mark_the_secrets_of_databases_backups_trino_and_the_metastore() -> None:
    assert MARKED.keys() >= {
        "lakehouse_database.password",
        "lakehouse_federation.password",
        "lakehouse_backup_passphrase",
        "trino_shared_secret",
        "trino_secrets.SALES",
        "hive_metastore_credentials.SALES",
    }


@pytest.mark.parametrize("name", MARKED)
@pytest.mark.parametrize(
    ("word", "check"),
    [
        ("", "secrets.missing"),
        (None, "secrets.missing"),
        ("changeme", "secrets.weak"),
        ("zq", "secrets.weak"),
        ("eleven-char", "secrets.weak"),
        ("PasswordPassword", "secrets.weak"),
        ("abababababababab", "secrets.weak"),
        ("HiveMetastore1!", "secrets.weak"),
        ("xk3v-xk3v-xk3v-", "secrets.weak"),
        ("123456789012", "secrets.weak"),
        (f"{FIT}\n", "secrets.characters"),
        ("sec-hunter2\rSECRET", "secrets.characters"),
        ("sec-hunter2-\x1bSECRET", "secrets.characters"),
        (FIT, None),
        ("a8f5f167f44f4964e6c998dee827110c", None),
        ("correct horse battery hive", None),
    ],
)
def test_a_password_that_is_guessed_or_breaks_a_file_is_named_and_not_shown(
    name: str, word: str | None, check: str | None
) -> None:
    found = secrets.checked(a_host(**MARKED[name](word)), KNOWN)
    assert [one.check for one in found] == ([check] if check else [])
    text = "\n".join(map(str, found))
    assert not check or f"n1: {name} " in text
    assert not word or word.strip() not in text.replace(name, "")


def test_how_strong_a_secret_of_another_system_is_is_a_warning() -> None:
    def levels(word: str) -> list[Level]:
        return [one.level for one in secrets.checked(a_host(trino_secrets={"SALES": word}), KNOWN)]

    assert levels("pearl") == [Level.WARNING]
    assert levels("pearl\n") == [Level.FAULT]


def test_what_the_vault_lacks_is_another_finding() -> None:
    assert secrets.checked(a_host(trino_shared_secret=variables.Undefined("vault_trino")), KNOWN) == []


@pytest.mark.parametrize(
    ("settings", "path", "advice"),
    [
        (
            {"hive_metastore_hive_site": {"javax.jdo.option.ConnectionPassword": "pearl"}},
            "hive_metastore_hive_site has javax.jdo.option.ConnectionPassword",
            "hive_metastore_credentials",
        ),
        (
            # The metastore answers a client with what this becomes.
            {"hive_metastore_hive_site": {"javax.jdo.option.ConnectionPassword": "${env.PEARL}"}},
            "hive_metastore_hive_site has javax.jdo.option.ConnectionPassword",
            "hive_metastore_credentials",
        ),
        (
            {"hdfs_core_site": {"fs.s3a.secret.key": "pearl"}},
            "hdfs_core_site has fs.s3a.secret.key",
            "hadoop.security.credential.provider.path",
        ),
        (
            {"hdfs_core_site": {"fs.azure.account.key.lake.blob.core.windows.net": "pearl"}},
            "hdfs_core_site has fs.azure.account.key.lake.blob.core.windows.net",
            "hadoop.security.credential.provider.path",
        ),
        (
            {"spark_defaults": {"spark.hadoop.fs.s3a.secret.key": "pearl"}},
            "spark_defaults has spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.hadoop.security.credential.provider.path",
        ),
        (
            # Spark replaces a variable in its own settings alone, and Hadoop's spelling is no other.
            {"spark_defaults": {"spark.hadoop.fs.s3a.secret.key": "${env:PEARL}"}},
            "spark_defaults has spark.hadoop.fs.s3a.secret.key",
            "spark.hadoop.hadoop.security.credential.provider.path",
        ),
        (
            {"spark_connect_defaults": {"spark.connect.authenticate.token": "pearl"}},
            "spark_connect_defaults has spark.connect.authenticate.token",
            "${env:NAME}",
        ),
        (
            {"flink_iceberg_catalog": {"s3.secret-access-key": "pearl"}},
            "flink_iceberg_catalog has s3.secret-access-key",
            "hadoop.security.credential.provider.path",
        ),
        (
            {"flink_config": {"security.ssl.rest.key-password": "pearl"}},
            "flink_config has security.ssl.rest.key-password",
            "a file of mode 0400",
        ),
        (
            {"spark_unit_service": {"Environment": ["A=b", "AWS_SECRET_KEY=pearl"]}},
            "spark_unit_service.Environment[1] has AWS_SECRET_KEY",
            "EnvironmentFile",
        ),
        (
            {"node_java_options": ["-Xmx1g", "-Djavax.net.ssl.keyStorePassword=pearl"]},
            "node_java_options[1] has Djavax.net.ssl.keyStorePassword",
            "a file of mode 0400",
        ),
        (
            {"postgresql_settings": {"primary_conninfo": "host=a user=b password=pearl"}},
            "postgresql_settings has password",
            "~postgres/.pgpass",
        ),
        (
            {"trino_node": {"node.token": "pearl"}},
            "trino_node has node.token",
            "trino_secrets",
        ),
        (
            {"trino_catalog_properties": {"shop": {"connection-url": "jdbc:mysql://a:3306?password=pearl"}}},
            "trino_catalog_properties.shop has password",
            "trino_secrets",
        ),
        (
            {"trino_config": {"event-listener.url": "https://ada:pearl@example.org/"}},
            "trino_config has a password in a URL",
            "trino_secrets",
        ),
        (
            {"trino_resource_groups": {"a": [{"b": {"some-password": "pearl"}}]}},
            "trino_resource_groups.a[0].b has some-password",
            "trino_secrets",
        ),
    ],
)
def test_a_secret_in_a_file_that_all_may_read(settings: dict[str, Any], path: str, advice: str) -> None:
    (line,) = exposed(**settings)
    assert line.startswith(f"FAIL secrets.exposed n1: {path} in plain text, in a file that all may read: ")
    assert advice in line
    assert "pearl" not in line.lower()


@pytest.mark.parametrize(
    "settings",
    [
        {
            "hive_metastore_hive_site": {
                "hadoop.security.credential.provider.path": "localjceks://file/a.jceks"
            }
        },
        {"hive_metastore_hive_site": {"javax.jdo.option.ConnectionPassword": None}},
        {"hdfs_site": {"dfs.block.access.token.enable": True, "dfs.block.access.token.lifetime": 600}},
        {"hdfs_core_site": {"fs.s3a.access.key": "AKIA", "fs.s3a.aws.credentials.provider": "org.example.A"}},
        {"hdfs_core_site": {"hadoop.http.authentication.signature.secret.file": "/etc/pearl"}},
        {"spark_defaults": {"spark.authenticate.secret": "${env:SPARK_SECRET}"}},
        {
            "spark_defaults": {
                "spark.authenticate.secret.file": "/etc/pearl",
                "spark.ssl.privateKey": "/etc/k",
            }
        },
        {"spark_unit_service": {"EnvironmentFile": "/etc/pearl", "LoadCredential": "my-token:/etc/pearl"}},
        {"trino_node": {"node.token": "${ENV:TOKEN}"}},
        {"trino_catalog_properties": {"shop": {"connection-url": "jdbc:mysql://a?password=${ENV:SHOP}"}}},
        {"trino_log_levels": {"org.apache.hadoop.security.token": "DEBUG"}},
        {"backup_pgbackrest_settings": {"repo2-s3-key-secret": "pearl"}},
        {"monitoring_receivers": [{"name": "a", "email_configs": [{"auth_password": "pearl"}]}]},
        {"monitoring_alertmanager": {"global": {"smtp_auth_password": "pearl"}}},
        {"postgresql_settings": {"ssl_passphrase_command": "cat /etc/pearl"}},
        {"lakehouse_database": {"password": FIT}, "trino_secrets": {"PASSWORD": FIT}},
    ],
)
def test_what_is_no_secret_or_stands_where_one_may(settings: dict[str, Any]) -> None:
    assert exposed(**settings) == []


def test_every_value_of_a_secret_is_known_down_to_the_last_member() -> None:
    settings = {
        **{key: value for word in MARKED for key, value in MARKED[word](f"{word}-pearl").items()},
        "hdfs_core_site": {"fs.s3a.secret.key": "key-pearl", "dfs.replication": 3},
        "spark_unit_service": {"Environment": ["A=b", "A_TOKEN=token-pearl"]},
        "trino_catalogs": {"shop": {"connection-url": "jdbc:x://a?password=url-pearl&b=c"}},
        "my_own": {"credentials": {"user": ["ada-lovelace", "member-pearl"]}},
        "vault_sales": "vault-pearl", "ansible_become_password": 12345678, "lakehouse_root": "/lakehouse",
    }  # fmt: skip
    wanted = {f"{name}-pearl" for name in MARKED}
    members = ("key", "token", "url", "member", "vault")
    wanted |= {*(f"{name}-pearl" for name in members), "ada-lovelace", "12345678"}
    assert secrets.values(a_host(**settings), KNOWN) == wanted
    assert {name.partition(".")[0] for name in MARKED} > secrets.names(KNOWN) > {"trino_secrets"}


def test_a_short_name_and_a_number_beside_a_secret_are_none() -> None:
    """A text has them anywhere: check mode shows a "0" and the word "tests"."""
    webhook = {"url": "https://alerts.example/pearl", "max_alerts": 0}
    host = a_host(monitoring_receivers=[{"name": "tests", "webhook_configs": [webhook]}])
    assert secrets.values(host, KNOWN) == {"https://alerts.example/pearl"}


@pytest.mark.parametrize("key", ["fernet_key", "signing-key", "a.Password2", "api_token_old", "cipherKey"])
def test_a_key_that_ends_with_what_kind_of_key_it_is_holds_a_secret(key: str) -> None:
    assert secret_words.is_secret(key, "pearl")


def test_keys_that_describe_a_secret_are_none() -> None:
    """Of all keys that a component has, those with a secret's word and another end."""
    keys = {
        key
        for component in overrides.NAMES
        for section, words in keylists.read(component).items()
        if section != keylists.VERSION
        for key in words
    }
    described = {key for key in keys if not secret_words.is_secret(key, "pearl")}
    assert {
        "dfs.namenode.delegation.token.renew-interval",
        "hive.cluster.delegation.token.store.class",
        "metastore.token.signature",
        "spark.security.credentials.retryWait",
        "kubernetes.container.image.pull-secrets",
        "token-refresh-enabled",
    } <= described
    assert {key for key in keys if key.lower().endswith("password")} & described == set()
