"""The metastore's role reads and writes rows, a second role owns the tables: on a real server."""

# ruff: noqa: S608 -- constants

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

import pytest
from ansible.module_utils.lakehouse import metastore_schema as schema
from ansible.module_utils.lakehouse import metastore_sql, reader_sql

from tests.unit.metastore_database import Database, bare

# Names that have to be quoted.
USER, OWNER, READER = "it's", 'the "owner"', "Reader's"
TABLES = """
create table "DBS" ("NAME" text); create table "TBLS" (id int primary key); create table "VERSION" (v text);
create sequence if not exists seq; create table counted (id serial);
"""
ROLES = "".join(f"create role {metastore_sql.identifier(name)} login;" for name in (USER, OWNER, READER)) + (
    f"grant {metastore_sql.identifier(USER)} to {metastore_sql.identifier(OWNER)};"
)


@pytest.fixture(scope="module")
def administrator() -> Iterator[Database]:
    with bare() as found:
        found.run(ROLES)
        yield found


@pytest.fixture
def database(administrator: Database, names: Iterator[int]) -> Iterator[Database]:
    """A database that is empty, and owned as before there was an owner; the metastore's role asks it."""
    name = f"meta_{next(names)}"
    administrator.run(
        f"create database {name} owner {metastore_sql.identifier(USER)} template template0;"
        f" revoke all on database {name} from public"
    )
    yield replace(administrator, name=name, user=USER)
    administrator.run(f"drop database {name} with (force)")


@pytest.fixture(scope="module")
def names() -> Iterator[int]:
    return count()


def settle(administrator: Database, database: Database) -> None:
    administrator.run(metastore_sql.owned(database.name, USER, OWNER))
    replace(database, user=OWNER).run(metastore_sql.settled(USER, OWNER))


def is_settled(database: Database) -> bool:
    done = database.attempt(metastore_sql.is_settled(database.name, USER, OWNER))
    return done.returncode == 0


def refuses(database: Database, *statements: str) -> None:
    for statement in statements:
        done = database.attempt(statement)
        assert done.returncode != 0, statement
        assert "permission denied" in done.stderr or "must be owner" in done.stderr, done.stderr


def is_closed(database: Database) -> None:
    """The role owns nothing, makes nothing, and reads and writes rows."""
    assert is_settled(database)
    mine = "(select oid from pg_roles where rolname = session_user)"
    for catalog, column in (
        ("pg_class", "relowner"),
        ("pg_namespace", "nspowner"),
        ("pg_database", "datdba"),
    ):
        assert database.run(f"select count(*) from {catalog} where {column} = {mine}").strip() == "0", catalog
    refuses(
        database,
        "create table mine ()",
        "create schema mine",
        "create view mine as select 1",
        "create function mine() returns int language sql as 'select 1'",
        'drop table "DBS"',
        'alter table "DBS" add column x int',
        'truncate "DBS"',
        'create trigger mine before update on "DBS" for each row'
        " execute function suppress_redundant_updates_trigger()",
    )
    database.run(
        """begin; insert into "DBS" values ('x'); update "DBS" set "NAME" = 'y'; select * from "DBS";
        delete from "DBS"; select nextval('seq'), setval('seq', 5); insert into counted default values;
        lock table "DBS" in share mode; rollback"""
    )


def test_a_new_database_is_open_until_its_schema_is_complete(
    administrator: Database, database: Database
) -> None:
    assert not is_settled(database)
    settle(administrator, database)
    assert is_settled(database)
    database.run(f"{schema.BEGIN}; {TABLES}")
    assert is_settled(database), "the tables are being made"
    # Another converge, meanwhile or after an interruption, takes nothing away.
    settle(administrator, database)
    database.run(f"{schema.CLEAR}")
    database.run(f"{schema.BEGIN}; {TABLES}")
    database.run(schema.FINISH)
    is_closed(database)
    assert database.run('select count(*) from "RUNTIME_STATS"').strip() == "0"
    assert database.run(schema.IS_MAKING).strip() == "f"


def test_a_database_of_before_is_closed_and_stays_so(administrator: Database, database: Database) -> None:
    # Hive's script grants the schema to every role.
    database.run(
        f"create schema extra; {TABLES} create table extra.more (id int);"
        " grant all on schema public to public"
    )
    assert not is_settled(database)
    settle(administrator, database)
    is_closed(database)
    settle(administrator, database)
    is_closed(database)


def test_a_table_that_the_owner_adds_is_given_to_the_role(
    administrator: Database, database: Database
) -> None:
    database.run(TABLES)
    settle(administrator, database)
    replace(database, user=OWNER).run("create table added (); create sequence more")
    assert not is_settled(database)
    settle(administrator, database)
    database.run("select * from added; select nextval('more')")


@pytest.mark.parametrize("words", ['delete from "VERSION"', 'delete from "DBS"; select lakehouse.close()'])
def test_rows_do_not_open_a_database_again(words: str, administrator: Database, database: Database) -> None:
    database.run(TABLES)
    settle(administrator, database)
    database.run(words)
    settle(administrator, database)
    is_closed(database)


def test_what_a_stranger_made_runs_with_nobody_elses_rights(
    administrator: Database, database: Database
) -> None:
    """Neither while the database is closed, nor as a function with the owner's rights afterwards."""
    database.run(f"""{TABLES}
        create table seen (who text);
        create function public.planted() returns text security definer language sql
          as 'select current_user::text';
        create function public.format(text, variadic name[]) returns text language plpgsql as
          $$ begin insert into public.seen values (current_user); return 'select 1'; end $$;
        create function public.has_table_privilege(text, oid, text) returns boolean language plpgsql as
          $$ begin insert into public.seen values (current_user); return true; end $$;
        create function public.eq(name, name) returns boolean language plpgsql as
          $$ begin insert into public.seen values (current_user); return true; end $$;
        create operator public.= (leftarg = name, rightarg = name, function = public.eq);
        alter role {metastore_sql.identifier(USER)} set search_path = public, pg_catalog;""")
    try:
        settle(administrator, database)
    finally:
        administrator.run(f"alter role {metastore_sql.identifier(USER)} reset all")
    assert database.run("select * from public.seen").strip() == ""
    assert database.run("select public.planted()").strip() == USER


def test_the_metastores_role_makes_nothing_temporary(administrator: Database, database: Database) -> None:
    database.run(TABLES)
    administrator.run(f"grant temporary on database {database.name} to {metastore_sql.identifier(USER)}")
    assert not is_settled(database)
    settle(administrator, database)
    refuses(
        database,
        'create temporary table "DBS" (other int)',
        "create function pg_temp.one() returns int language sql as 'select 1'",
    )
    assert is_settled(database)


@pytest.fixture
def sales(administrator: Database, names: Iterator[int]) -> Iterator[Callable[..., Database]]:
    """Make a database of a user's tables, in several schemas."""
    name = f"sales_{next(names)}"
    reader = metastore_sql.identifier(READER)
    administrator.run(
        f"create database {name} template template0; revoke all on database {name} from public;"
        f" grant connect on database {name} to {reader};"
    )
    there = replace(administrator, name=name)
    there.run(
        "create table orders (); create view best as select 1; create schema hidden; create table hidden.x ()"
    )

    def settle(*schemas: str) -> Database:
        there.run(reader_sql.settled(READER, schemas))
        return replace(there, user=READER)

    yield settle
    administrator.run(f"drop database {name} with (force); revoke pg_read_all_data from {reader}")


def reads(database: Database, *schemas: str) -> bool:
    return database.attempt(reader_sql.is_settled(READER, schemas)).returncode == 0


def test_a_reader_reads_the_named_schemas_alone(
    administrator: Database, sales: Callable[..., Database]
) -> None:
    reader = sales("public", "new")
    assert reads(reader, "public", "new")
    reader.run("select * from orders; select * from best")
    refuses(
        reader,
        "select * from hidden.x",
        "select rolpassword from pg_authid",
        "create table new.mine ()",
        "create temporary table mine ()",
        "insert into orders default values",
    )
    administrator.run(f"grant pg_read_all_data to {metastore_sql.identifier(READER)}")
    assert not reads(reader, "public", "new")


def test_a_reader_reads_tables_that_come_later(
    administrator: Database, sales: Callable[..., Database]
) -> None:
    """At once if their maker has tables there already, and else once this runs again."""
    reader = sales("public")
    shop = replace(reader, user="shop")
    administrator.run("create role shop login")
    replace(reader, user="postgres").run(
        f"grant connect on database {reader.name} to shop; grant usage, create on schema public to shop;"
        " create table later ()"
    )
    reader.run("select * from later")
    assert reads(reader, "public")
    shop.run("create table of_shop ()")
    assert not reads(reader, "public")
    sales("public")
    shop.run("create table of_shop_too ()")
    reader.run("select * from of_shop; select * from of_shop_too")
    assert reads(reader, "public")


def test_a_schema_that_is_not_named_any_more_is_taken_back(sales: Callable[..., Database]) -> None:
    reader = sales("public", "hidden")
    reader.run("select * from hidden.x")
    assert not reads(reader, "public")
    sales("public")
    assert reads(reader, "public")
    refuses(reader, "select * from hidden.x")


def test_postgresqls_own_schemas_are_given_to_nobody(sales: Callable[..., Database]) -> None:
    reader = sales("pg_catalog", "information_schema", "pg_toast")
    refuses(reader, "select * from pg_catalog.pg_authid")
    assert reads(reader, "pg_catalog")
