"""Packages that are there cost a question to dpkg, and no more."""

from __future__ import annotations

from plugins.action import lakehouse_packages as packages

SHOWN = "installed openjdk-21-jre-headless\nconfig-files openjdk-25-jre-headless\n"


def test_what_is_installed_is_not_missing() -> None:
    assert packages.missing(["openjdk-21-jre-headless"], SHOWN) == []


def test_a_package_whose_configuration_alone_is_left_is_missing() -> None:
    wanted = ["openjdk-21-jre-headless", "openjdk-25-jre-headless", "postgresql-17"]
    assert packages.missing(wanted, SHOWN) == ["openjdk-25-jre-headless", "postgresql-17"]
