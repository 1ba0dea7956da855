"""Which configuration keys the components know: `python -m lakehouse.dev.componentkeys`.

Hadoop, Hive, Spark, Delta, Iceberg and Flink ignore a key that they do not know, without a word. Theirs are
read from the defaults and classes of the releases and written to `lakehouse/validation/keys/<component>.txt`,
so that a misspelt one is named before it does nothing. To be run when one of their versions changes; keys
with a part that people choose are in `free_keys.yml`, which is written by hand.
"""

from __future__ import annotations

import re
import tarfile
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lakehouse import artifacts
from lakehouse.artifacts import manifest, releases
from lakehouse.dev import keyfiles
from lakehouse.dev.classfiles import first_arguments, members_of_arrays, static_arguments, strings
from lakehouse.run import ROOT
from lakehouse.validation import keylists

PROGRAM = "lakehouse.dev.componentkeys"


class Source(NamedTuple):
    """The source of keys: members of jars, the reader of their texts, and the pattern of a key.

    `jars`, `members` and `key` are patterns. `templates` make the key of a configuration file from the text,
    or from the group `word` of `key`; a star stands for a name that users choose.
    """

    jars: str
    members: str
    read: Callable[[bytes], Iterable[str]]
    key: str
    templates: tuple[str, ...] = ("{}",)


class Component(NamedTuple):
    """What brings it, and the sources of its keys by the place where these may stand."""

    release: str
    sections: Mapping[str, tuple[Source, ...]]


def names_in_xml(data: bytes) -> Iterator[str]:
    """Yield the names of a file of properties; a part that is an example becomes a star."""
    for name in ET.fromstring(data).iter("name"):  # noqa: S314 (from the verified release)
        yield re.sub(r"\[\w+\]|EXAMPLE[A-Z]+", "*", str(name.text).strip())


def words_in_quotes(data: bytes) -> Iterator[str]:
    """Yield the words that a Python program has in quotes."""
    for word in re.findall(rb"""["']([\w.-]+)["']""", data):
        yield word.decode()


def options_of_flink(data: bytes) -> set[str]:
    """What a class that declares options of Flink calls them, now and in earlier versions."""
    return static_arguments(data) | members_of_arrays(data)


# What a member has to name for a reader to find keys in it: told faster than by a pattern of many words.
_NAMED: Mapping[Callable[[bytes], Iterable[str]], bytes] = {
    options_of_flink: b"org/apache/flink/configuration/ConfigOptions"
}
_WORDS = r"(\.[\w-]+)+"
_ICEBERG = "iceberg-spark-runtime"
_CATALOG = (
    r"CatalogProperties|CatalogUtil|RESTCatalogProperties|ResourcePaths|AuthManagers|AuthProperties"
    r"|OAuth2Properties|BaseCatalog|SparkCatalog|SparkSessionCatalog|HiveCatalog|HadoopCatalog"
    r"|JdbcCatalog|JdbcUtil|NessieCatalog"
    r"|AwsProperties|AwsClientProperties|HttpClientProperties|S3FileIOProperties|GCPProperties|AzureProperties"
)
_OF_ANY_CATALOG = Source(
    "flink-table-api-java-uber-", r".*/CommonCatalogOptions\.class", options_of_flink, "[a-z-]+"
)
COMPONENTS = {
    "hadoop": Component(
        "hadoop",
        {
            "keys": (
                Source("hadoop-(common|hdfs)-", r"(core|hdfs)-default\.xml", names_in_xml, ".*"),
                Source(
                    "hadoop-(common|auth|hdfs|hdfs-client)-",
                    r".*\.class",
                    strings,
                    r"(dfs|fs|ha|hadoop|io|ipc|net|rpc|seq|ssl|tfile)" + _WORDS,
                ),
                # With the name of a nameservice behind it, or with that and the one of a NameNode.
                Source("hadoop-hdfs-", r".*/NameNode\.class", members_of_arrays, "dfs" + _WORDS, ("{}.*",)),
            )
        },
    ),
    "hive": Component(
        "hive",
        {
            "keys": (
                Source("hive-standalone-metastore-", r".*\.class", strings, "(hive|metastore)" + _WORDS),
                Source("hive-standalone-metastore-", r".*/MetastoreConf.*", strings, r"javax\.jdo" + _WORDS),
                Source(
                    "datanucleus-|hive-standalone-metastore-", r".*\.class", strings, "datanucleus" + _WORDS
                ),
                Source(r"javax\.jdo-", r".*/Constants\.class", strings, r"javax\.jdo\.option" + _WORDS),
            )
        },
    ),
    "spark": Component(
        "spark",
        {
            "keys": (
                Source("spark-", r"org/apache/spark/(?!connect/proto/).*\.class", strings, "spark" + _WORDS),
                Source("pyspark", r".*\.py", words_in_quotes, "spark" + _WORDS),
                # One setting for each kind of connection.
                Source(
                    "spark-network-common_",
                    r".*/TransportConf\.class",
                    strings,
                    r"(?:io|sasl)\.\w+",
                    ("spark.shuffle.{}", "spark.rpc.{}", "spark.files.{}"),
                ),
                Source(
                    "spark-sql_",
                    r".*/RocksDBConf\$\.class",
                    strings,
                    r"(?!true|false|lz4|spark)[a-z][A-Za-z.]+",
                    ("spark.sql.streaming.stateStore.rocksdb.{}",),
                ),
                Source(
                    "spark-core_",
                    r".*/SSLOptions\$\.class",
                    strings,
                    "\x01\\.(?P<word>\\w+)",
                    ("spark.ssl.{}", "spark.ssl.*.{}"),
                ),
            )
        },
    ),
    "delta": Component(
        "spark",
        {
            "keys": (
                Source(
                    "delta-spark_", r".*\.class", strings, r"spark\.(?:databricks|delta|sql\.delta)" + _WORDS
                ),
                Source(
                    "delta-spark_",
                    r".*/DeltaSQLConfBase\.class",
                    first_arguments,
                    r"(?!spark\.)\w+(?:\.\w+)*",
                    ("spark.databricks.delta.{}",),
                ),
                Source(
                    "delta-spark_",
                    r".*/DeltaConfigsBase\.class",
                    first_arguments,
                    r"(?!spark\.|delta\.)[\w-]+(?:\.[\w-]+)*",
                    ("spark.databricks.delta.properties.defaults.{}",),
                ),
            )
        },
    ),
    "iceberg": Component(
        "spark",
        {
            "keys": (
                Source(
                    _ICEBERG,
                    r"org/apache/iceberg/(?!shaded/).*\.class",
                    strings,
                    r"iceberg\.(?:engine|hadoop|hive|io|mr|orc|rest|scan|worker)" + _WORDS,
                ),
                Source(_ICEBERG, r".*/SparkSQLProperties\.class", strings, "spark" + _WORDS),
            ),
            "catalog": (
                # Some of their words are no keys, which does no harm.
                Source(
                    _ICEBERG,
                    rf"org/apache/iceberg/(.*/)?({_CATALOG})\.class",
                    strings,
                    r"(?!org\.|java\.|true|false)[a-z][a-z0-9.-]*[a-z0-9]",
                ),
                Source(_ICEBERG, r".*/NessieCatalog\.class", strings, r"nessie\.(?P<word>[a-z.-]+)"),
                Source(
                    _ICEBERG,
                    r"org/apache/iceberg/TableProperties\.class",
                    strings,
                    r"[a-z][\w-]+" + _WORDS + "|format-version",
                    ("table-default.{}", "table-override.{}"),
                ),
            ),
        },
    ),
    "flink": Component(
        "flink",
        {
            "keys": (
                Source(
                    "flink-|iceberg-flink-",
                    r".*\.class",
                    options_of_flink,
                    rf"(?!com\.|java|org\.|System\.)[A-Za-z][\w-]*{_WORDS}",
                ),
                Source(
                    "flink-dist-",
                    r".*Options\.class",
                    options_of_flink,
                    "cleanup-strategy|external-resources|high-availability|restart-strategy",
                ),
                Source("flink-dist-", r".*/HadoopUtils\.class", strings, r"fs\.hdfs" + _WORDS),
                Source(
                    "flink-dist-",
                    r".*/CleanupOptions\.class",
                    static_arguments,
                    "attempts|delay|(initial|max)-backoff",
                    ("cleanup-strategy.fixed-delay.{}", "cleanup-strategy.exponential-delay.{}"),
                ),
                Source(
                    "flink-sql-gateway-",
                    r".*/SqlGatewayRestOptions\.class",
                    static_arguments,
                    "[a-z-]+",
                    ("sql-gateway.endpoint.rest.{}",),
                ),
                Source(
                    "flink-sql-connector-hive-",
                    r".*/HiveServer2EndpointConfigOptions\.class",
                    static_arguments,
                    r"(catalog|module|thrift)\.[a-z.-]+",
                    ("sql-gateway.endpoint.hiveserver2.{}",),
                ),
                Source(
                    "flink-table-api-java-uber-",
                    r".*/FileCatalogStoreFactoryOptions\.class",
                    static_arguments,
                    "path",
                    ("table.catalog-store.file.{}",),
                ),
            ),
            "iceberg_catalog": (
                _OF_ANY_CATALOG,
                Source("iceberg-flink-", r".*/FlinkCatalogFactory\.class", strings, r"[a-z]+(-[a-z]+)*"),
            ),
            "hive_catalog": (
                _OF_ANY_CATALOG,
                Source(
                    "flink-sql-connector-hive-",
                    r".*/HiveCatalogFactoryOptions\.class",
                    options_of_flink,
                    "[a-z-]+",
                ),
            ),
            # The client of the metastore that the catalog brings is of an older version than the daemon.
            "hive_site": (
                Source(
                    "flink-sql-connector-hive-",
                    r"org/apache/hadoop/hive/(conf|metastore)/.*\.class",
                    strings,
                    r"(datanucleus|hive|javax\.jdo|metastore)" + _WORDS,
                ),
            ),
        },
    ),
}


def keys_of_release(archive: Path, sections: Mapping[str, tuple[Source, ...]]) -> dict[str, list[str]]:
    """Return the keys of a component's sources in an archive, sorted, by section."""
    keys_by_section: dict[str, set[str]] = {name: set() for name in sections}
    sources = [(name, source) for name, several in sections.items() for source in several]
    with tarfile.open(archive) as tar:
        for info in tar:
            path = Path(info.name)
            matching = [
                pair
                for pair in sources
                if path.suffix in {".jar", ".zip"} and re.match(pair[1].jars, path.name)
            ]
            if matching and info.isfile():
                stream = tar.extractfile(info)
                assert stream is not None  # noqa: S101 (it is a regular file)
                with zipfile.ZipFile(stream) as jar:
                    for name, source in matching:
                        keys_by_section[name] |= set(_keys(jar, source))
    return {name: sorted(keys) for name, keys in keys_by_section.items()}


def _keys(jar: zipfile.ZipFile, source: Source) -> Iterator[str]:
    for info in jar.infolist():
        if info.filename.endswith(".jar"):  # Flink's planner is one within another
            with jar.open(info) as stream, zipfile.ZipFile(stream) as inner:
                yield from _keys(inner, source)
        if not re.fullmatch(source.members, info.filename):
            continue
        data = jar.read(info)
        # Most classes name no key, and are not taken apart.
        if _NAMED.get(source.read, b"") not in data or not re.search(source.key.encode(), data):
            continue
        for text in source.read(data):
            if match := re.fullmatch(source.key, text):
                word = match.groupdict().get("word", text)
                yield from (template.format(word) for template in source.templates)


def extracted(bill: manifest.Manifest, name: str, archive: Path) -> dict[str, list[str]]:
    """What the list of a component holds."""
    sections = COMPONENTS[name].sections
    return {keylists.VERSION: [bill.versions[name]], **keys_of_release(archive, sections)}


def main() -> None:
    """Write the files."""
    bill = manifest.load(ROOT / "versions.yml")
    for name, component in COMPONENTS.items():
        archive = releases.verified(bill, component.release, artifacts.cache_dir())
        keyfiles.write(name, PROGRAM, extracted(bill, name, archive))


if __name__ == "__main__":
    main()
