"""Functions that an intruder has got into the metastore's database, and who has called them."""

from __future__ import annotations

from collections.abc import Iterator

from lakehouse.run import ROOT

MAKE = (ROOT / "tests" / "strangers_functions.sql").read_text(encoding="utf-8")
REMOVE = """
drop operator if exists public.= (character varying, character varying);
drop aggregate if exists public.string_agg (character varying, text);
drop function if exists public.json_build_object(
    text, character varying, text, character varying, text, text, text, text
  ), public.jsonb_build_object(
    text, character varying, text, character varying, text, character varying, text, character varying,
    text, character varying, text, jsonb
  ), public.kit_joined, public.kit_equal, public.kit_seen;
"""
_MARK = "LOG:  kit_seen "


def callers(log: str) -> Iterator[tuple[str, bool, str]]:
    """Give the role of each logged call, whether it was a superuser's, and the program."""
    for line in log.splitlines():
        if _MARK in line:
            role, is_super, program = line.partition(_MARK)[2].split(" ", 2)
            yield role, is_super == "on", program
