"""SQL that gives a role the tables of named schemas to read, and nothing else."""

# ruff: noqa: S608 -- a value gets into SQL through literal() alone

from __future__ import annotations

from collections.abc import Sequence

from ansible.module_utils.lakehouse.metastore_sql import literal

# Tables, partitioned and foreign ones, views and materialized views.
_READABLE = "c.relkind in ('r', 'p', 'f', 'v', 'm')"


def making(schemas: Sequence[str]) -> str:
    """Return the query for the statements that make schemas which are not there."""
    return f"""select format('create schema %I', name) from {_named(schemas)}
  where not exists (select from pg_namespace where nspname = name)"""


def granting(user: str, schemas: Sequence[str]) -> str:
    """Return the query for the statements that grant missing privileges, and revoke those in other schemas.

    Default privileges grant tables that the database's owner, or a role with tables there, creates later.
    """
    role, names = literal(user), _named(schemas)
    reader = f"(select oid from pg_roles where rolname = {role})"
    inside, outside = (f"{word} exists (select from {names} where name = n.nspname)" for word in ("", "not"))
    return f"""select statement from (
  select format('grant usage on schema %I to %I', n.nspname, {role}) as statement
    from pg_namespace n where {inside} and not has_schema_privilege({role}, n.oid, 'usage')
  union all
  select format('grant select on %s to %I', c.oid::regclass, {role})
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where {inside} and {_READABLE} and not has_table_privilege({role}, c.oid, 'select')
  union all
  select format('alter default privileges for role %I in schema %I grant select on tables to %I',
      r.rolname, n.nspname, {role})
    from pg_namespace n, pg_roles r
    where {inside} and r.rolcanlogin and (
      r.oid = (select datdba from pg_database where datname = current_database())
      or exists (select from pg_class c where c.relnamespace = n.oid and c.relowner = r.oid and {_READABLE}))
    and not exists (
      select from pg_default_acl a, aclexplode(a.defaclacl) e
      where a.defaclrole = r.oid and a.defaclnamespace = n.oid and a.defaclobjtype = 'r'
      and e.grantee = {reader} and e.privilege_type = 'SELECT')
  union all
  select format('revoke all on schema %I from %I', n.nspname, {role})
    from pg_namespace n
    where {outside} and exists (select from aclexplode(n.nspacl) e where e.grantee = {reader})
  union all
  select format('revoke all on %s from %I', c.oid::regclass, {role})
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where {outside} and {_READABLE}
    and exists (select from aclexplode(c.relacl) e where e.grantee = {reader})
  union all
  select format('alter default privileges for role %I in schema %I revoke all on tables from %I',
      pg_get_userbyid(a.defaclrole), n.nspname, {role})
    from pg_default_acl a join pg_namespace n on n.oid = a.defaclnamespace
    where {outside} and a.defaclobjtype = 'r'
    and exists (select from aclexplode(a.defaclacl) e where e.grantee = {reader})
  ) needed"""


def settled(user: str, schemas: Sequence[str]) -> str:
    """Return the script that the server's administrator runs in psql, in the database."""
    return f"""set search_path = pg_catalog;
{making(schemas)} \\gexec
{granting(user, schemas)} \\gexec
"""


def is_settled(user: str, schemas: Sequence[str]) -> str:
    """Return the question of the role that fails where it may do too little or too much."""
    return f"""select 1 / (not pg_has_role(current_user, 'pg_read_all_data', 'usage')
  and not has_database_privilege('public', current_database(), 'connect')
  and not has_database_privilege(current_database(), 'create')
  and not has_database_privilege(current_database(), 'temporary')
  and not exists ({making(schemas)}) and not exists ({granting(user, schemas)}))::int"""


def _named(schemas: Sequence[str]) -> str:
    """Return the schemas as rows; PostgreSQL's own, with the verifiers of passwords, are never among them."""
    names = ", ".join(literal(name) for name in schemas)
    return (
        f"(select name from unnest(array[{names}]::text[]) name"
        " where name !~ '^pg_' and name <> 'information_schema') named"
    )
