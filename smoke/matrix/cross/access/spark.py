"""What people may do through Spark: from a Unix account, and through Spark Connect."""

from __future__ import annotations

from collections.abc import Mapping

from smoke.matrix.cross.access.acts import Act

ACTS: Mapping[str, Act] = {}
