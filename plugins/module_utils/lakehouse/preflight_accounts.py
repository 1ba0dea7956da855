"""Whether accounts that exist already are in the group that all services share.

systemd-sysusers leaves an existing account as it is. HDFS asks the system for a user's groups, and would
refuse the files of the others to a service outside of the group. Standard library only, and Python 3.9: this
runs on the nodes.
"""

from __future__ import annotations

import grp
import os
import pwd
from collections.abc import Callable

from ansible.module_utils.lakehouse.findings import finding


def groups_of(user: str) -> list[str] | None:
    """Return the names of a user's groups, None where there is no such user."""
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return None
    names = {entry.gr_gid: entry.gr_name for entry in grp.getgrall()}
    return [names.get(number, str(number)) for number in os.getgrouplist(user, account.pw_gid)]


def members(group: str, users: list[str]) -> list[str]:
    """Return the accounts in a group besides `users`, by their primary group or another.

    None where there is no such group.
    """
    try:
        entry = grp.getgrnam(group)
    except KeyError:
        return []
    accounts = (account.pw_name for account in pwd.getpwall() if account.pw_gid == entry.gr_gid)
    return sorted({*entry.gr_mem, *accounts}.difference(users))


def check_accounts(
    users: list[str], group: str, groups: Callable[[str], list[str] | None] = groups_of
) -> list[dict[str, str]]:
    """Check that every account of the kit that exists already is in the group."""
    findings = []
    for user in sorted(set(users)):
        user_groups = groups(user)
        if user_groups is not None and group not in user_groups:
            fact = f"the account {user} exists already, in {', '.join(user_groups)} alone"
            advice = (
                f"groupadd --force --system {group} && usermod --append --groups {group} {user},"
                " or name another user in lakehouse_users"
            )
            findings.append(finding("node.accounts", fact, advice, f"in the group {group}"))
    return findings
