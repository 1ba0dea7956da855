"""SQL that decides who owns the metastore's tables, and what the metastore's role may do with them.

The metastore's role reads and writes rows. A second role, the owner, owns the database and everything in it;
no client on the network can log in as the owner. While there is no complete schema, the metastore's role may
make one; `lakehouse.close()` then transfers it to the owner, in the transaction that completes it.

Pure text, which Ansible's modules, docker compose and the bench share.
"""

# ruff: noqa: S608 -- a value gets into SQL through literal() and identifier() alone

from __future__ import annotations

# Objects of the metastore cannot shadow PostgreSQL's own for a session that starts with it.
OPTIONS = "-c search_path=pg_catalog"
# A schema of this name marks a database in which the tables are being made; it was empty before.
MAKING = "lakehouse_making"
# The release's PostgreSQL script names this table in lower case, the metastore asks for it in upper case.
RUNTIME_STATS = """
create table if not exists public."RUNTIME_STATS" (
  "RS_ID" bigint primary key, "CREATE_TIME" bigint not null, "WEIGHT" bigint not null, "PAYLOAD" bytea
);
create index if not exists "IDX_RUNTIME_STATS_CREATE_TIME" on public."RUNTIME_STATS" ("CREATE_TIME");
"""
# psql runs the statement that it gets back; a database of another kit has no such function.
CLOSE = "select 'select lakehouse.close()' where to_regprocedure('lakehouse.close()') is not null \\gexec\n"
# Neither a schema with the name of the role nor one of a session can stand before the catalog's.
SEARCH_PATH = "public, pg_temp"
# Deleting rows must not turn a database that is closed into one that is open: only tables and schemas count,
# and the metastore's role can neither drop nor make one once it is closed.
_UNFINISHED = f"""(
  exists (select from pg_namespace where nspname = '{MAKING}')
  or not exists (
    select from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relkind in ('r', 'p')))"""
_ROWS = "select, insert, update, delete"
_NUMBERS = "usage, select, update"
# What is altered is locked: no transaction of a metastore that runs is waited for longer than this.
_LOCK = "set lock_timeout = '30s';\n"


def literal(text: str) -> str:
    """Quote a string for SQL (standard_conforming_strings is on since PostgreSQL 9.1)."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def owner_of(user: str) -> str:
    """Return the owner's name, by that of the metastore's role; the role postgresql has the same."""
    return f"{user}_owner"


def opening(user: str) -> str:
    """Return the query for the statements that let the metastore's role make the schema.

    It returns none once the schema is complete.
    """
    role = literal(user)
    return f"""select format(
    'grant create on database %I to %I; grant usage, create on schema public to %2$I',
    current_database(), {role})
  where {_UNFINISHED} and not (
    has_database_privilege({role}, current_database(), 'create')
    and has_schema_privilege({role}, 'public', 'create')
    and to_regprocedure('lakehouse.close()') is not null)"""


def closing(user: str, owner: str) -> str:
    """Return the query for the statements that limit the metastore's role to the rows of its tables.

    It returns none before the schema is complete. Tables, sequences and schemas become the owner's. Functions
    and views keep their owner: a metastore creates none, and a planted one must not run as the owner.
    """
    role, new = literal(user), literal(owner)
    role_oid, owner_oid = (f"(select oid from pg_roles where rolname = {name})" for name in (role, new))
    table, sequence = "c.relkind in ('r', 'p')", "c.relkind = 'S'"
    lacks_rows, lacks_numbers = _lacks("has_table_privilege", role, _ROWS), _lacks(
        "has_sequence_privilege", role, _NUMBERS
    )  # fmt: skip
    handover = "alter {0} %1$s owner to %2$I; revoke all on {0} %1$s from %3$I; grant {1} on {0} %1$s to %3$I"
    # The owner of a column's sequence follows that of its table automatically.
    of_column = """exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i'))"""
    return f"""select statement from (
  select 1 as step, format('alter schema %I owner to %I', nspname, {new}) as statement
    from pg_namespace where nspowner = {role_oid}
  union all
  select 2, format('{handover.format("table", _ROWS)}', c.oid::regclass, {new}, {role})
    from pg_class c where c.relowner = {role_oid} and {table} and c.relpersistence <> 't'
  union all
  select 2, format('{handover.format("sequence", _NUMBERS)}', c.oid::regclass, {new}, {role})
    from pg_class c
    where c.relowner = {role_oid} and {sequence} and c.relpersistence <> 't' and not {of_column}
  union all
  select 3, format('grant {_ROWS} on %s to %I', c.oid::regclass, {role})
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = 'public' and c.relowner = {owner_oid} and {table} and {lacks_rows}
  union all
  select 3, format('grant {_NUMBERS} on sequence %s to %I', c.oid::regclass, {role})
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where {sequence} and (c.relowner = {role_oid} and c.relpersistence <> 't' and {of_column}
      or n.nspname = 'public' and c.relowner = {owner_oid} and {lacks_numbers})
  union all
  select 4, format('revoke create on database %I from public, %I', current_database(), {role})
    where has_database_privilege({role}, current_database(), 'create')
  union all
  select 4, format(
      'revoke create on schema public from public, %I; grant usage on schema public to %1$I', {role})
    where has_schema_privilege({role}, 'public', 'create')
    or not has_schema_privilege({role}, 'public', 'usage')
  ) needed where not {_UNFINISHED} order by step"""


def _lacks(function: str, role: str, privileges: str) -> str:
    all_held = " and ".join(f"{function}({role}, c.oid, '{word}')" for word in privileges.split(", "))
    return f"not ({all_held})"


def settled(user: str, owner: str) -> str:
    """Return the script that the owner runs in psql.

    It opens a database without a schema, and closes one that has it. Each table is a transaction of its own,
    so that nothing waits for a metastore while it holds another table.
    """
    return f"""{_LOCK}set search_path = pg_catalog;
set client_min_messages = warning;
create schema if not exists lakehouse;
revoke all on schema lakehouse from public;
grant usage on schema lakehouse to {identifier(user)};
create or replace function lakehouse.close() returns void language plpgsql
  security definer set search_path = pg_catalog, pg_temp as $body$
declare needed text;
begin
  for needed in {closing(user, owner)} loop execute needed; end loop;
end $body$;
{opening(user)} \\gexec
{closing(user, owner)} \\gexec
"""


def owned(database: str, user: str, owner: str) -> str:
    """Return the superuser's statements, for the database `postgres`, that give the owner its database."""
    name, role = identifier(database), identifier(user)
    return (
        f"begin; alter database {name} owner to {identifier(owner)};"
        f" revoke all on database {name} from public; revoke temporary on database {name} from {role};"
        f" grant connect on database {name} to {role};"
        f" alter database {name} set search_path = {SEARCH_PATH}; commit;"
    )


def is_owned(database: str, user: str, owner: str) -> str:
    """Return the expression that is true once the statements of owned() are not needed."""
    role, name = literal(user), literal(database)
    return f"""exists (
    select from pg_database d join pg_db_role_setting s on s.setdatabase = d.oid and s.setrole = 0
    where d.datname = {name} and pg_get_userbyid(d.datdba) = {literal(owner)}
    and 'search_path={SEARCH_PATH}' = any (s.setconfig)
    and not has_database_privilege('public', d.oid, 'connect')
    and has_database_privilege({role}, d.oid, 'connect')
    and not has_database_privilege({role}, d.oid, 'temporary'))"""


def is_settled(database: str, user: str, owner: str) -> str:
    """Return the query that fails for the metastore's role where settled() or owned() has something to do."""
    return f"""select 1 / ({is_owned(database, user, owner)}
  and not exists ({opening(user)}) and not exists ({closing(user, owner)}))::int"""
