"""The process of a rendered unit file of systemd, for the directives that the templates use.

References: systemd.service(5), "Command lines"; systemd.exec(5), "Environment"; systemd.syntax(7), "Quoting".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ansible.module_utils.lakehouse.refused import RefusedError

# A blank, text between quotes of either kind, or text without; a backslash hides what follows it.
TOKEN = re.compile(
    r"""(?P<blank>\s+)|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'|(?P<plain>(?:[^\s"'\\]|\\.?)+)"""
)
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))")
NAMED = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "s": " ", "t": "\t", "v": "\v",
    "\\": "\\", '"': '"', "'": "'",
}  # fmt: skip
PERCENT = re.compile(r"%(%|[A-Za-z])")
REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<name>\w+)\})")
WHOLE_WORD = re.compile(r"\$(\w+)")


@dataclass(frozen=True)
class Unit:
    """A process: command, own variables, files with more of them, folder, mask of new files, user."""

    command: list[str]
    variables: dict[str, str]
    files: list[str]
    folder: str
    umask: int
    user: str | None

    def argv(self, environment: Mapping[str, str]) -> list[str]:
        """Return the command with its variables replaced; a word ``$NAME`` becomes any number of words."""
        program, *arguments = self.command
        expanded = [program]
        for argument in arguments:
            if variable := WHOLE_WORD.fullmatch(argument):
                expanded += words(environment.get(variable[1], ""))
            else:
                expanded.append(
                    REFERENCE.sub(
                        lambda reference: (
                            "$" if reference["dollar"] else environment.get(reference["name"], "")
                        ),
                        argument,
                    )
                )
        return expanded


def parse(text: str) -> Unit:
    """Parse a unit file; RefusedError for directives that only systemd implements."""
    settings = _service(text)
    unsupported = sorted(name for name in settings if name.startswith(("ExecStartP", "ExecCondition")))
    if unsupported:
        raise RefusedError(f"{', '.join(unsupported)}: only systemd runs that", "leave it out for containers")
    commands = settings.get("ExecStart", [])
    if len(commands) != 1:
        raise RefusedError(f"{len(commands)} lines ExecStart= where one is needed")
    command = [_plain(word) for word in words(commands[0])]
    if not command or not command[0].startswith("/"):
        raise RefusedError(f"ExecStart={commands[0]} does not start with a program's path")
    pairs = (_plain(word).split("=", 1) for line in settings.get("Environment", []) for word in words(line))
    return Unit(
        command=command,
        variables={pair[0]: pair[1] for pair in pairs if len(pair) == 2},  # noqa: PLR2004 -- name and value
        files=[_plain(path) for path in settings.get("EnvironmentFile", [])],
        folder=_last(settings, "WorkingDirectory", "/"),
        umask=int(_last(settings, "UMask", "0022"), 8),
        user=_last(settings, "User", "") or None,
    )


def words(text: str) -> list[str]:
    """Split a line at blanks outside of quotes, and remove quotes and escapes."""
    result: list[str] = []
    position, open_word = 0, False
    while position < len(text):
        token = TOKEN.match(text, position)
        if not token:
            raise RefusedError(f"a quote is not closed: {text[position:]}")
        if token["blank"] is None:
            part = ESCAPE.sub(_unescaped, token[token.lastgroup or 0])
            if open_word:
                result[-1] += part
            else:
                result.append(part)
        open_word = token["blank"] is None
        position = token.end()
    return result


def _unescaped(escape: re.Match[str]) -> str:
    *numbers, character = escape.groups()
    if character is not None:
        return NAMED.get(character, escape[0])
    hexadecimal, octal = next((code for code in numbers[:3] if code), None), numbers[3]
    return chr(int(hexadecimal, 16) if hexadecimal else int(octal, 8))


def _plain(text: str) -> str:
    """Replace ``%%`` by one percent sign; RefusedError for specifiers, which only systemd resolves."""
    for specifier in PERCENT.finditer(text):
        if specifier[1] != "%":
            raise RefusedError(
                f"{specifier[0]} in {text} is known to systemd alone", "write its value into the inventory"
            )
    return text.replace("%%", "%")


def _service(text: str) -> dict[str, list[str]]:
    """Return the lines of [Service] by name; an empty value resets the list."""
    settings: dict[str, list[str]] = {}
    section = ""
    for line in text.replace("\\\n", " ").splitlines():
        stripped = line.strip()
        if stripped.startswith("["):
            section = stripped
        elif section == "[Service]" and "=" in stripped and not stripped.startswith(("#", ";")):
            name, value = (part.strip() for part in stripped.split("=", 1))
            settings[name] = [*settings.get(name, []), value] if value else []
    return settings


def _last(settings: dict[str, list[str]], name: str, default: str) -> str:
    return _plain((settings.get(name) or [default])[-1])
