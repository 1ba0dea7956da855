#!/usr/bin/python
"""Unpack a release beside the others and point ``current`` at it, unless that is left to another call."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.lakehouse import host_manifest, host_state
from ansible.module_utils.lakehouse.host_state import RELEASE_LIST

DOCUMENTATION = r"""
module: lakehouse_release
short_description: One component's installed release
description:
  - Called by the action plugin of the same name.
  - "C(root)/releases/C(release) holds the files, C(root)/current points at the one in use."
  - Older releases are removed, but for the newest and those from which a process has a file open.
  - A release has a list of its files; those that are missing, or have another size, are unpacked again.
options:
  root: {type: path, required: true, description: The component's folder.}
  release: {type: str, required: true, description: Version and digest of the desired release.}
  conf: {type: path, description: Folder that the release offers as C(conf).}
  compared: {type: bool, default: true, description: Whether it needs all files of its list.}
  archive: {type: path, description: The archive, where the release may be missing.}
  sha256: {type: str, description: What the archive must be.}
  keep: {type: int, default: 2, description: "How many releases stay, the current one included."}
  switch:
    type: bool
    default: true
    description: Whether C(current) is pointed at it. If not, it lies beside the others and none is removed.
  manifest: {type: path, description: The manifest of the host.}
author: The lakehouse kit
"""
EXAMPLES = r"""
- name: Install Hadoop
  lakehouse_release: {component: hadoop, root: /opt/hadoop}
"""
RETURN = r"""
path: {type: str, returned: always, description: The release's folder.}
missing: {type: bool, returned: always, description: Whether the archive is needed to complete it.}
damaged: {type: bool, returned: always, description: Whether another archive than the desired one was given.}
removed: {type: list, elements: str, returned: success, description: Releases that were superseded.}
"""


def is_sound(archive: str, sha256: str) -> bool:
    """Whether the archive is the one that was built."""
    with Path(archive).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest() == sha256


def is_complete(target: Path, compared: bool) -> bool:
    """Tell whether a release is there, with all files of its list; where it is not compared, as it is."""
    return target.is_dir() and (not compared or host_state.lacking(target) == [])


def install(archive: str, target: Path) -> list[str] | None:
    """Unpack beside the target and rename; return the files that a release that was there lacked.

    None where nothing was to be done. What has the target's name is complete, after a power cut too. Another
    control machine that installs the same waits, also for a tar whose module was killed. Where the target is
    there, it gets what it lacks.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f"{target.name}.partial")
    with target.with_name(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if is_complete(target, compared=True):
            return None
        if partial.exists():
            shutil.rmtree(partial)
        partial.mkdir()
        unpack = ["tar", "--extract", "--no-same-owner", "--file", archive, "--directory", str(partial)]
        subprocess.run(unpack, check=True, capture_output=True, text=True, pass_fds=[lock.fileno()])
        lines = "".join(f"{line}\n" for line in host_state.listed(partial))
        (partial / RELEASE_LIST).write_text(lines, encoding="utf-8", errors="surrogateescape")
        sync = ["sync", "--file-system", str(partial)]
        subprocess.run(sync, check=True, capture_output=True, text=True, pass_fds=[lock.fileno()])
        if not target.is_dir():
            partial.rename(target)
            return []
        return put_back(partial, target)


def put_back(partial: Path, target: Path) -> list[str]:
    """Move what a release lacks to it, file by file, and the list; return the names of these files.

    Processes go on with the files that they have open.
    """
    (partial / RELEASE_LIST).replace(target / RELEASE_LIST)
    missing = host_state.lacking(target) or []
    for name in missing:
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (partial / name).replace(path)
    shutil.rmtree(partial)
    return missing


def leads(link: Path, target: str) -> bool:
    """Tell whether the link points at the target."""
    return link.is_symlink() and link.readlink() == Path(target)


def point(link: Path, target: str, *, anew: bool = False) -> bool:
    """Make the link point at the target, atomically; tell whether it did not, or is made `anew`."""
    if leads(link, target) and not anew:
        return False
    temporary = link.with_name(f".{link.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(link)
    return True


def superseded(root: Path, keep: int) -> list[Path]:
    """Return the releases beyond the newest `keep`, oldest last; the current one counts as the newest."""
    release_folders = [
        path for path in (root / "releases").iterdir() if path.is_dir() and path.suffix != ".partial"
    ]
    current = (root / "current").resolve()
    release_folders.sort(key=lambda path: (path.resolve() == current, path.stat().st_mtime), reverse=True)
    return release_folders[max(keep, 1) :]


def opened(processes: Path = Path("/proc")) -> set[Path]:
    """Return every file that a process has open or mapped; one that ends meanwhile has none."""
    files: set[Path] = set()
    for process in processes.glob("[0-9]*"):
        with suppress(OSError):
            files.update(link.readlink() for link in (process / "fd").iterdir())
        with suppress(OSError):
            maps = (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
            files.update(Path(line[line.index("/") :]) for line in maps if "/" in line)
    return files


def clear(root: Path, keep: int) -> list[str]:
    """Remove superseded releases that nothing runs from; return their names."""
    old = superseded(root, keep)
    files = opened() if old else set()
    removed = [path for path in old if not any(file.is_relative_to(path.resolve()) for file in files)]
    for path in removed:
        shutil.rmtree(path)
    return [path.name for path in removed]


def main() -> None:
    """Entry point."""
    os.umask(0o022)  # a login's own could close the folders to the users of the daemons
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "release": {"type": "str", "required": True},
            "conf": {"type": "path"},
            "compared": {"type": "bool", "default": True},
            "archive": {"type": "path"},
            "sha256": {"type": "str"},
            "keep": {"type": "int", "default": 2},
            "switch": {"type": "bool", "default": True},
            **host_manifest.OPTION,
        },
        required_together=[("archive", "sha256")],
        supports_check_mode=True,
    )
    root = Path(module.params["root"])
    target = root / "releases" / module.params["release"]
    archive, compared = module.params["archive"], module.params["compared"]
    missing = not is_complete(target, compared)
    removed: list[str] = []
    if missing and (module.check_mode or not archive):
        module.exit_json(changed=module.check_mode, missing=True, damaged=False, path=str(target))
    try:
        if missing and not is_sound(archive, module.params["sha256"]):
            module.exit_json(changed=False, missing=True, damaged=True, path=str(target))
        lacked = install(archive, target) if missing else None
        changed = lacked is not None
        links = {target / "conf": module.params["conf"]} if module.params["conf"] else {}
        if module.params["switch"]:
            links[root / "current"] = f"releases/{target.name}"
        for link, to in links.items():
            # A daemon that started without a file restarts: it is older than the link.
            changed |= not leads(link, to) if module.check_mode else point(link, to, anew=bool(lacked))
        if module.params["switch"] and not module.check_mode:
            # By their last use: what is superseded goes, and never what was current until now.
            if changed:  # daemons that run from it are older than a change
                os.utime(target)
            removed = clear(root, module.params["keep"])
            items = [{"kind": "link", "path": str(link), "target": str(to)} for link, to in links.items()]
            # What a pinned release lacks cannot be built.
            items += [{"kind": "release", "path": str(target)}] if compared else []
            host_manifest.put(module, items, instead_of=f"{root}/")
    except subprocess.CalledProcessError as error:
        module.fail_json(msg=f"{target}: unpacking failed: {error.stderr.strip()}; next: df -h {root}")
    except OSError as error:
        module.fail_json(msg=f"{target}: {error.strerror}: {error.filename}; next: df -h {root}")
    changed |= bool(removed)
    module.exit_json(changed=changed, missing=False, damaged=False, path=str(target), removed=removed)


if __name__ == "__main__":
    main()
