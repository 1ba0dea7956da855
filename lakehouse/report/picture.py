"""The layout of the picture: machines side by side, their services in bands, the data below.

All lengths are units of the SVG's own coordinate system, which the page shows as pixels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lakehouse.model import services as catalogue
from lakehouse.report.cluster import Cluster, Host

_MARGIN = 12
_LABEL_WIDTH = 92
_LEAST_HOST_WIDTH = 240
_LETTER_WIDTH = 8.2  # of a host's name, generously
_GAP = 16
_HEAD = 64
_CHIP = 30
_CHIP_GAP = 8
_BAND_PADDING = 12
_BAND_GAP = 8
_FOOT = 44

# Of a group that is in no catalogue.
_OTHER = "other"


@dataclass(frozen=True)
class Box:
    """A rectangle with a text, and the band it belongs to."""

    x: float
    y: float
    width: float
    height: float
    text: str
    band: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Picture:
    """Everything to draw, from the background to the front."""

    width: float
    height: float
    bands: tuple[Box, ...]
    hosts: tuple[Box, ...]
    services: tuple[Box, ...]
    warehouse: Box


def draw(cluster: Cluster) -> Picture:
    """Place the hosts and services of a cluster."""
    placed = {host.name: list(_services(host)) for host in cluster.hosts}
    host_width = max([_LEAST_HOST_WIDTH, *(len(host.name) * _LETTER_WIDTH + 40 for host in cluster.hosts)])
    hosts_x = _MARGIN + _LABEL_WIDTH
    columns = {
        host.name: hosts_x + _GAP + index * (host_width + _GAP) for index, host in enumerate(cluster.hosts)
    }
    right = hosts_x + _GAP + len(cluster.hosts) * (host_width + _GAP)

    bands: list[Box] = []
    services: list[Box] = []
    y = float(_MARGIN + _HEAD)
    band_names = dict.fromkeys([_OTHER, *(group.band for group in catalogue.load().groups.values())])
    for name in band_names:
        tallest = max(
            (sum(band == name for band, _ in host_services) for host_services in placed.values()), default=0
        )
        if not tallest:
            continue
        height = 2 * _BAND_PADDING + tallest * _CHIP + (tallest - 1) * _CHIP_GAP
        bands.append(Box(_MARGIN, y, right - _MARGIN, height, name.capitalize(), name))
        for host, host_services in placed.items():
            labels = [label for band, label in host_services if band == name]
            for index, label in enumerate(labels):
                top = y + _BAND_PADDING + index * (_CHIP + _CHIP_GAP)
                services.append(Box(columns[host] + 12, top, host_width - 24, _CHIP, label, name))
        y += height + _BAND_GAP
    bottom = y + 4
    return Picture(
        width=right + _MARGIN,
        height=bottom + _FOOT + _MARGIN,
        bands=tuple(bands),
        hosts=tuple(
            Box(columns[host.name], _MARGIN, host_width, bottom - _MARGIN, host.name, detail=host.address)
            for host in cluster.hosts
        ),
        services=tuple(services),
        warehouse=Box(
            hosts_x + _GAP,
            bottom + 6,
            right - hosts_x - 2 * _GAP,
            _FOOT - 6,
            cluster.warehouse,
            detail=f"each block on {cluster.replication} nodes",
        ),
    )


def _services(host: Host) -> Iterator[tuple[str, str]]:
    """Give band and label of each group of a host; an unknown group is shown by its name."""
    groups = catalogue.load().groups
    yield from ((group.band, group.label) for name, group in groups.items() if name in host.groups)
    for name in host.groups:
        if name not in groups:
            yield _OTHER, name.replace("_", " ").capitalize()
