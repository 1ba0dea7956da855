"""Secrets: those that the argument specs mark `no_log`, and others in files that every account may read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lakehouse import secret_words
from lakehouse.model.inventory import Host
from lakehouse.validation.finding import Finding, Level
from lakehouse.validation.variables import Option, Undefined

SHORTEST = 12
# A repeated character or two are no secret, whatever their number.
LEAST_VARIETY = 5
# What is left of a secret beside words that are tried first, digits and signs.
LEAST_OWN = 4
KNOWN = ("123456789012", "qwertyuiop[]", "1q2w3e4r5t6y")
TRIED = re.compile(
    r"password|passw0rd|changeme|secret|administrator|admin|root|letmein|welcome|qwerty"
    r"|lakehouse|postgresql|postgres|metastore|hive|trino|spark|flink|hadoop|hdfs"
)
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# Their files are read by their service alone, or hold levels of loggers, whose names are classes.
NOT_READ_BY_ALL = frozenset(
    {"backup_pgbackrest_settings", "monitoring_alertmanager", "monitoring_receivers", "trino_log_levels"}
)
# What an inventory refers to in its vault: by Ansible's convention each is a secret.
_VAULT = "vault_"
# Trino's own check judges the keys of these by what its connectors know.
KEYS_OF_TRINO = ("trino_config", "trino_catalogs", "trino_catalog_properties")


class Place(NamedTuple):
    """What a role has for secrets that it puts into no file for all: a reference to one, and advice."""

    reference: str
    advice: str


_NO_REFERENCE = r"(?!)"
_HADOOP = Place(
    _NO_REFERENCE,
    "put it into a Hadoop credential file of mode 0400, "
    "and name that in hadoop.security.credential.provider.path",
)
_METASTORE = Place(_NO_REFERENCE, "put it into hive_metastore_credentials under the name of its property")
_UNIT = Place(_NO_REFERENCE, "put it into a file of mode 0400, and name that in EnvironmentFile")
_SPARK = Place(
    r"\$\{env:\w+\}",
    "put it into a Hadoop credential file of mode 0400, and name that in "
    "spark.hadoop.hadoop.security.credential.provider.path; or write ${env:NAME}, "
    "and name a file of mode 0400 in spark_unit_service.EnvironmentFile",
)
_TRINO = Place(r"\$\{ENV:\w+\}", "put it into trino_secrets under a NAME, and write ${ENV:NAME}")
_ELSEWHERE = Place(
    _NO_REFERENCE, "put it into a file of mode 0400 that the service's user owns, and name that"
)
# By the beginning of the variable's name; the first counts.
PLACES = (
    (re.compile(r"\w+_unit_service"), _UNIT),
    (re.compile(r"trino_"), _TRINO),
    (re.compile(r"hive_metastore_"), _METASTORE),
    (re.compile(r"hdfs_|flink_(?:hive|iceberg)_"), _HADOOP),
    (re.compile(r"spark_"), _SPARK),
    (re.compile(r"postgresql_settings"), Place(_NO_REFERENCE, "put it into ~postgres/.pgpass, of mode 0600")),
)  # fmt: skip


def checked(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Check that every secret is set, fits into a line and is hard to guess; no finding shows one.

    Secrets are the ``options`` that the specs mark `no_log`. A weak one of another system, a member of a dict
    without suboptions, is a warning: the inventory cannot change it.
    """
    findings = []
    for name, value, level in marked(host, options):
        text = "" if value is None else str(value)
        advice = "set it in group_vars/all/vault.yml: ansible-vault create"
        if not text:
            findings.append(Finding("secrets.missing", host.name, f"{name} is empty", advice, level=level))
        elif CONTROL.search(text):
            fact = f"{name} holds a line break or another control character"
            advice = "write it without one, as printf does and echo and '|' do not"
            findings.append(Finding("secrets.characters", host.name, fact, advice, "one line of text"))
        elif len(text) < SHORTEST:
            expected = f"at least {SHORTEST} characters"
            findings.append(
                Finding("secrets.weak", host.name, f"{name} is short", advice, expected, level=level)
            )
        elif _is_guessed(text):
            fact, expected = f"{name} is a well-known one", "a random one"
            findings.append(Finding("secrets.weak", host.name, fact, advice, expected, level=level))
    return findings


def marked(host: Host, options: Mapping[str, Option]) -> Iterator[tuple[str, Any, Level]]:
    """Yield path, value, and the level of a finding, of each variable that the specs mark `no_log`."""
    for name, option in options.items():
        value = host.variables.get(name)
        if name in host.variables and not isinstance(value, Undefined):
            yield from _marked(name, option, value)


def values(host: Host, options: Mapping[str, Option]) -> set[str]:
    """Return the secrets of a host's variables as text: by the mark of the specs, or by the word of its key.

    Those shorter than LEAST_IN_A_TEXT are left out: a number, or a name, beside a secret in a marked list.
    Variables without a secret are not evaluated. Raises LakehouseError for a secret that cannot be evaluated.
    """
    hidden = {name: option for name, option in options.items() if _hides(option)}
    texts = {text for _, value, _ in marked(host, hidden) for text in _texts(value)}
    for name in host.variables:
        if name.startswith(_VAULT) or any(_in_settings(name, host.written(name))):
            value = host.variables[name]
            texts.update(_texts(value) if name.startswith(_VAULT) else _in_settings(name, value))
    return {text for text in texts if len(text) >= secret_words.LEAST_IN_A_TEXT}


def names(options: Mapping[str, Option]) -> frozenset[str]:
    """Return the variables whose values are secrets."""
    return frozenset(name for name, option in options.items() if option.get("no_log"))


def exposed(host: Host, options: Mapping[str, Option]) -> list[Finding]:
    """Find secrets in settings that become files, or units, which every account of a node may read."""
    return [
        Finding(
            "secrets.exposed",
            host.name,
            f"{path} has {key} in plain text, in a file that all may read",
            place.advice,
        )
        for name, value in host.variables.items()
        if name in options and name not in NOT_READ_BY_ALL
        for place in [_place(name)]
        for path, key in dict.fromkeys(_exposed(name, options[name], value, place))
    ]


def _marked(path: str, option: Option, value: Any) -> Iterator[tuple[str, Any, Level]]:
    if option.get("no_log"):
        if isinstance(value, Mapping):
            yield from ((f"{path}.{key}", member, Level.WARNING) for key, member in value.items())
        elif isinstance(value, list):
            yield from ((f"{path}[{index}]", member, Level.FAULT) for index, member in enumerate(value))
        else:
            yield path, value, Level.FAULT
        return
    options: Mapping[str, Option] = option.get("options") or {}
    items = enumerate(value) if isinstance(value, list) else [(None, value)]
    for index, item in items:
        item_path = path if index is None else f"{path}[{index}]"
        for key, suboption in options.items():
            # A missing one is a finding of the check for missing variables.
            if isinstance(item, Mapping) and key in item:
                yield from _marked(f"{item_path}.{key}", suboption, item[key])


def _hides(option: Option) -> bool:
    return bool(option.get("no_log")) or any(map(_hides, (option.get("options") or {}).values()))


def _texts(value: Any) -> Iterator[str]:
    """Give the scalars of a value, down to its last member, as text."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for member in value:
            yield from _texts(member)
    elif value is not None and not isinstance(value, bool | Undefined):
        yield str(value)


def _in_settings(key: str, value: Any) -> Iterator[str]:
    """Give the secrets of a setting by its key, and by those of its members."""
    if isinstance(value, Mapping | list | tuple):
        items = value.items() if isinstance(value, Mapping) else ((key, member) for member in value)
        for name, member in items:
            if isinstance(member, Mapping) and secret_words.is_secret(str(name), member):
                yield from _texts(member)
            else:
                yield from _in_settings(str(name), member)
    elif value is not None and not isinstance(value, Undefined):
        if secret_words.is_secret(key, value):
            yield str(value)
        yield from (secret for _, secret in secret_words.within(str(value)))


def _is_guessed(secret: str) -> bool:
    word = secret.lower()
    remainder, guess_count = TRIED.subn("", word)
    return (
        word in KNOWN
        or len(set(secret)) < LEAST_VARIETY
        or bool(re.fullmatch(r"(.+?)\1+", word))
        or (guess_count > 0 and len(re.sub(r"[\W\d_]", "", remainder)) < LEAST_OWN)
    )


def _place(variable: str) -> Place:
    return next((place for pattern, place in PLACES if pattern.match(variable)), _ELSEWHERE)


def _exposed(path: str, option: Option, value: Any, place: Place) -> Iterator[tuple[str, str]]:
    """Yield where a secret stands and what it is called, of a variable, down to its last member."""
    if option.get("no_log"):
        return
    options: Mapping[str, Option] = option.get("options") or {}
    if isinstance(value, Mapping):
        for key, member in map(_named, value.items()):
            if isinstance(member, Mapping | list):
                yield from _exposed(f"{path}.{key}", options.get(key, {}), member, place)
            elif options.get(key, {}).get("no_log"):
                continue
            elif not path.startswith(KEYS_OF_TRINO) and secret_words.is_secret(key, member):
                if not _refers(key, member, place):
                    yield path, key
            else:
                yield from _within(path, member, place)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            inner = {"options": options} if isinstance(member, Mapping) else {}
            yield from _exposed(f"{path}[{index}]", inner, member, place)
    else:
        yield from _within(path, value, place)


def _named(item: tuple[Any, Any]) -> tuple[str, Any]:
    return str(item[0]), item[1]


def _within(path: str, value: Any, place: Place) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        for key, secret in secret_words.within(value):
            if not _refers(key, secret, place):
                yield path, key


def _refers(key: str, value: Any, place: Place) -> bool:
    # Spark puts variables of the environment into settings of its own alone.
    return bool(re.fullmatch(place.reference, str(value))) and not key.startswith("spark.hadoop.")
