"""Maven as the downloader: one generated POM, one run.

Mirrors, proxies and credentials are what the user's Maven settings say; nothing here names a registry.
"""

from __future__ import annotations

import os
import re
import shlex
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from pathlib import Path

from lakehouse.artifacts.coordinates import Coordinate
from lakehouse.artifacts.tools import Failure, Tool

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
NAMESPACE = "http://maven.apache.org/POM/4.0.0"

# What Maven says when a file does not come: without a reason if the repository has no such file.
_TRANSFER = re.compile(
    r"(?:Could not (?:transfer|find) artifact|Failure to (?:transfer|find)) "
    r"(?P<artifact>\S+) (?:from/to|in|from) (?:\S+ \()?(?P<url>[^\s)]+)\)?(?:: (?P<reason>.+?))?(?= -> |\n|$)"
)
_REPEATED = re.compile(r"^(?:transfer|authorization) failed for \S+?[:,] ")


def copy(coordinates: Iterable[Coordinate], workdir: Path, destination: Path) -> Tool:
    """Plan a run that places exactly these files under `destination` (each at its `Coordinate.path`).

    The plugin's `copy` goal resolves file by file: no dependencies come along, and two versions of one
    library can stand side by side.
    """
    configuration = ET.Element("configuration")
    items = ET.SubElement(configuration, "artifactItems")
    for coordinate in sorted(coordinates):
        item = _coordinate_element(items, "artifactItem", coordinate)
        _text(item, "outputDirectory", str(destination / coordinate.path.parent))
        _text(item, "destFileName", coordinate.file_name)
    pom = _write_pom(workdir / "copy.xml", configuration=configuration)
    return _tool(pom, "copy")


def resolve(
    closure: Iterable[Coordinate], exact: Iterable[Coordinate], workdir: Path, destination: Path
) -> Tool:
    """Plan a run that resolves `closure` with its runtime dependencies and `exact` without any.

    The files and their POMs with all parents land under `destination` in the layout of a Maven repository.
    """
    dependencies = ET.Element("dependencies")
    for coordinate in closure:
        _coordinate_element(dependencies, "dependency", coordinate)
    for coordinate in exact:
        dependency = _coordinate_element(dependencies, "dependency", coordinate)
        exclusion = ET.SubElement(ET.SubElement(dependency, "exclusions"), "exclusion")
        _text(exclusion, "groupId", "*")
        _text(exclusion, "artifactId", "*")
    configuration = ET.Element("configuration")
    for name, value in {
        "includeScope": "runtime",
        "outputDirectory": str(destination),
        "useRepositoryLayout": "true",
        "copyPom": "true",
        "addParentPoms": "true",
    }.items():
        _text(configuration, name, value)
    pom = _write_pom(workdir / "resolve.xml", dependencies=dependencies, configuration=configuration)
    return _tool(pom, "copy-dependencies")


def forget(coordinates: Iterable[Coordinate], workdir: Path) -> Tool:
    """Plan a run that deletes these versions from the user's local repository, wherever that is."""
    names = sorted({f"{item.group}:{item.artifact}:{item.version}" for item in coordinates})
    pom = _write_pom(workdir / "forget.xml")
    return _tool(pom, "purge-local-repository", f"-DmanualInclude={','.join(names)}", "-DreResolve=false")


def explain(output: str) -> Failure:
    """Find the one line that matters in the output of a failed run."""
    if "No space left on device" in output:
        return Failure("disk full: Maven could not write a file", "df -h ~ and free some space")
    if transfer := _TRANSFER.search(output):
        artifact, url, reason = transfer["artifact"], transfer["url"], transfer["reason"]
        if not reason:
            return Failure(f"Maven: {artifact} is not at {url}", "check versions.yml and the mirror")
        return Failure(
            f"Maven: {url} did not deliver {artifact}: {_REPEATED.sub('', reason)}",
            "check the network and the mirrors and proxies in Maven's settings.xml, then run it again",
            transient=not re.search(r"\b40[137]\b", reason),
        )
    errors = re.findall(r"\[ERROR\] (.*\S.*)$", output, flags=re.MULTILINE)
    lines = errors or [line for line in output.splitlines() if line.strip()] or ["no output"]
    return Failure(f"Maven failed: {lines[-1 if not errors else 0].strip()}", "mvn --version")


def _tool(pom: Path, goal: str, *options: str) -> Tool:
    # Maven reads MAVEN_ARGS itself only from 3.9 on; passing it here makes it work with older ones too.
    user_options = shlex.split(os.environ.get("MAVEN_ARGS", ""))
    command = [
        "mvn",
        "--batch-mode",
        "--no-transfer-progress",
        "--update-snapshots",  # also asks again for what a mirror did not have the last time
        f"--file={pom}",
        # Bounded retries and timeouts: the first two for Maven up to 3.8, the others for 3.9 and later.
        "-Dmaven.wagon.http.retryHandler.count=3",
        "-Dmaven.wagon.rto=60000",
        "-Daether.connector.http.retryHandler.count=3",
        "-Daether.connector.connectTimeout=10000",
        "-Daether.connector.requestTimeout=60000",
        *user_options,
        *options,
        f"{PLUGIN}:{goal}",
    ]
    return Tool(
        name="Maven",
        command=tuple(command),
        environment={"MAVEN_ARGS": "", "LC_ALL": "C.UTF-8"},
        log=pom.with_suffix(".log"),
        explain=explain,
        hint="apt-get install maven",
    )


def _write_pom(
    path: Path, *, dependencies: ET.Element | None = None, configuration: ET.Element | None = None
) -> Path:
    project = ET.Element("project", xmlns=NAMESPACE)
    for name, value in {
        "modelVersion": "4.0.0",
        "groupId": "lakehouse",
        "artifactId": path.stem,
        "version": "1",
        "packaging": "pom",
    }.items():
        _text(project, name, value)
    if dependencies is not None:
        project.append(dependencies)
    if configuration is not None:
        group, artifact, version = PLUGIN.split(":")
        plugin = ET.SubElement(ET.SubElement(ET.SubElement(project, "build"), "plugins"), "plugin")
        _text(plugin, "groupId", group)
        _text(plugin, "artifactId", artifact)
        _text(plugin, "version", version)
        plugin.append(configuration)
    ET.indent(project)
    path.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(project).write(path, encoding="utf-8", xml_declaration=True)
    return path


def _coordinate_element(parent: ET.Element, tag: str, coordinate: Coordinate) -> ET.Element:
    element = ET.SubElement(parent, tag)
    _text(element, "groupId", coordinate.group)
    _text(element, "artifactId", coordinate.artifact)
    _text(element, "version", coordinate.version)
    _text(element, "type", coordinate.type)
    if coordinate.classifier:
        _text(element, "classifier", coordinate.classifier)
    return element


def _text(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = text
