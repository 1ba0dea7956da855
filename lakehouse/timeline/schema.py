"""The SQL of the timeline: its tables, and the functions through which alone they change.

States of an instant: `requested`, `inflight`, `completed`, in this order. A completed instant has the next
version of its table, and the next number in the order of all tables. Error codes: 40001 for another version
than the expected one, 55000 for a move that is not allowed and for files that are not known, 02000 for a
missing table or instant.
"""

from __future__ import annotations

import hashlib

_TABLES = """
CREATE SCHEMA IF NOT EXISTS timeline;
CREATE TABLE IF NOT EXISTS timeline.tables (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- The number and the creation time that the metastore has for the table.
  source bigint NOT NULL,
  created bigint NOT NULL,
  database text NOT NULL,
  name text NOT NULL,
  format text NOT NULL,
  location text NOT NULL,
  last_instant bigint NOT NULL DEFAULT 0,
  version bigint NOT NULL DEFAULT 0,
  -- The versions whose files are known; NULL without any.
  files_from bigint,
  files_to bigint,
  -- What the collector knows of the table, and why it cannot be read.
  state text NOT NULL DEFAULT '',
  fault text NOT NULL DEFAULT '',
  lag text NOT NULL DEFAULT '',
  dropped timestamptz,
  UNIQUE (source, created)
);
CREATE TABLE IF NOT EXISTS timeline.instants (
  table_id bigint NOT NULL REFERENCES timeline.tables ON DELETE CASCADE,
  instant bigint NOT NULL,
  state text NOT NULL CHECK (state IN ('requested', 'inflight', 'completed')),
  action text NOT NULL,
  commit text,
  version bigint,
  number bigint UNIQUE,
  committed timestamptz,
  observed timestamptz NOT NULL DEFAULT clock_timestamp(),
  author text NOT NULL DEFAULT '',
  engine text NOT NULL DEFAULT '',
  heartbeat timestamptz,
  lease interval,
  PRIMARY KEY (table_id, instant),
  UNIQUE (table_id, commit),
  UNIQUE (table_id, version),
  CHECK ((state = 'completed') = (version IS NOT NULL AND number IS NOT NULL AND commit IS NOT NULL))
);
CREATE INDEX IF NOT EXISTS instants_committed ON timeline.instants (committed);
CREATE TABLE IF NOT EXISTS timeline.contents (
  table_id bigint NOT NULL,
  instant bigint NOT NULL,
  state text NOT NULL,
  content jsonb NOT NULL,
  PRIMARY KEY (table_id, instant, state),
  FOREIGN KEY (table_id, instant) REFERENCES timeline.instants ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS timeline.files (
  table_id bigint NOT NULL REFERENCES timeline.tables ON DELETE CASCADE,
  path text NOT NULL,
  added bigint NOT NULL,
  removed bigint,
  partition text NOT NULL,
  bytes bigint NOT NULL,
  rows bigint,
  content text NOT NULL,
  PRIMARY KEY (table_id, path, added)
);
-- One row: when all tables were looked at last.
CREATE TABLE IF NOT EXISTS timeline.runs (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  looked timestamptz NOT NULL
);
CREATE TABLE IF NOT EXISTS timeline.subscribers (
  name text PRIMARY KEY,
  url text NOT NULL,
  -- The last instant that it has received, and why the next one could not be sent.
  number bigint NOT NULL,
  fault text NOT NULL DEFAULT ''
);
"""

_STATES = """
CREATE OR REPLACE FUNCTION timeline.request(
  of_table bigint, what text, details jsonb DEFAULT '{}', lasts interval DEFAULT '1 hour'
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE fresh bigint;
BEGIN
  -- In microseconds, and later than any other of the table: the row is locked until the end.
  UPDATE timeline.tables
    SET last_instant = greatest(last_instant + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE id = of_table RETURNING last_instant INTO fresh;
  IF fresh IS NULL THEN
    RAISE EXCEPTION 'there is no table %', of_table USING ERRCODE = '02000';
  END IF;
  INSERT INTO timeline.instants (table_id, instant, state, action, heartbeat, lease)
    VALUES (of_table, fresh, 'requested', what, clock_timestamp(), lasts);
  INSERT INTO timeline.contents VALUES (of_table, fresh, 'requested', details);
  RETURN fresh;
END $$;

CREATE OR REPLACE FUNCTION timeline.move(
  of_table bigint, which bigint, before text, after text, details jsonb
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE known text;
BEGIN
  SELECT state INTO known FROM timeline.instants
    WHERE table_id = of_table AND instant = which FOR UPDATE;
  IF known IS NULL THEN
    RAISE EXCEPTION 'table % has no instant %', of_table, which USING ERRCODE = '02000';
  END IF;
  IF known = after AND details = (
    SELECT content FROM timeline.contents c
      WHERE c.table_id = of_table AND c.instant = which AND c.state = after
  ) THEN
    RETURN false;
  END IF;
  IF known <> before THEN
    RAISE EXCEPTION 'instant % of table % is %, and cannot become %', which, of_table, known, after
      USING ERRCODE = '55000';
  END IF;
  INSERT INTO timeline.contents VALUES (of_table, which, after, details);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION timeline.begin(
  of_table bigint, which bigint, details jsonb DEFAULT '{}'
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF timeline.move(of_table, which, 'requested', 'inflight', details) THEN
    UPDATE timeline.instants SET state = 'inflight', heartbeat = clock_timestamp()
      WHERE table_id = of_table AND instant = which;
  END IF;
END $$;

CREATE OR REPLACE FUNCTION timeline.heartbeat(of_table bigint, which bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE timeline.instants SET heartbeat = clock_timestamp()
    WHERE table_id = of_table AND instant = which AND state <> 'completed';
  IF NOT FOUND THEN
    RAISE EXCEPTION 'table % has no open instant %', of_table, which USING ERRCODE = '02000';
  END IF;
END $$;

CREATE OR REPLACE FUNCTION timeline.complete(
  of_table bigint, which bigint, is_commit text, expected bigint DEFAULT NULL, details jsonb DEFAULT '{}'
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE new_version bigint; new_number bigint;
BEGIN
  IF NOT timeline.move(of_table, which, 'inflight', 'completed', details) THEN
    RETURN (SELECT version FROM timeline.instants WHERE table_id = of_table AND instant = which);
  END IF;
  -- One at a time: a reader that has seen a number has seen all smaller ones.
  PERFORM pg_advisory_xact_lock(hashtext('timeline'));
  UPDATE timeline.tables SET version = version + 1
    WHERE id = of_table AND version = coalesce(expected, version) RETURNING version INTO new_version;
  IF new_version IS NULL THEN
    RAISE EXCEPTION 'table % is no longer of version %', of_table, expected USING ERRCODE = '40001';
  END IF;
  SELECT coalesce(max(number), 0) + 1 INTO new_number FROM timeline.instants;
  UPDATE timeline.instants SET state = 'completed', commit = is_commit, version = new_version,
      number = new_number, observed = clock_timestamp(), heartbeat = NULL, lease = NULL,
      committed = coalesce(to_timestamp((details->>'time_ms')::bigint / 1000.0), clock_timestamp()),
      author = coalesce(details->>'author', ''), engine = coalesce(details->>'engine', '')
    WHERE table_id = of_table AND instant = which;
  PERFORM timeline.synchronize(of_table, new_version, details);
  PERFORM pg_notify('timeline', json_build_object(
    'number', new_number, 'database', left(t.database, 256), 'table', left(t.name, 256),
    'version', new_version, 'commit', left(is_commit, 256))::text)
    FROM timeline.tables t WHERE id = of_table;
  RETURN new_version;
END $$;
"""

# `details` of a completed instant: `added` (path, bytes, rows, partition, content), `removed` (paths), and
# `whole` where `added` are all files; without both, its files are not known.
_FILES = """
CREATE OR REPLACE FUNCTION timeline.synchronize(of_table bigint, at_version bigint, details jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE is_whole boolean := coalesce((details->>'whole')::boolean, false);
BEGIN
  IF NOT is_whole AND (NOT details ? 'added' OR at_version - 1 IS DISTINCT FROM (
      SELECT files_to FROM timeline.tables WHERE id = of_table)) THEN
    RETURN;
  END IF;
  UPDATE timeline.files SET removed = at_version WHERE table_id = of_table AND removed IS NULL
    AND (is_whole OR path IN (SELECT jsonb_array_elements_text(details->'removed'))
         OR path IN (SELECT file->>'path' FROM jsonb_array_elements(details->'added') file));
  INSERT INTO timeline.files (table_id, path, added, partition, bytes, rows, content)
    SELECT of_table, path, at_version, coalesce(partition, ''), bytes, rows, coalesce(content, 'data')
    FROM jsonb_to_recordset(details->'added')
      file(path text, partition text, bytes bigint, rows bigint, content text)
    ON CONFLICT (table_id, path, added) DO NOTHING;
  UPDATE timeline.tables SET files_to = at_version,
      files_from = CASE WHEN files_to = at_version - 1 THEN files_from ELSE at_version END
    WHERE id = of_table;
END $$;

CREATE OR REPLACE FUNCTION timeline.files_at(of_table bigint, at_version bigint)
RETURNS SETOF timeline.files LANGUAGE plpgsql STABLE AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM timeline.tables
                 WHERE id = of_table AND at_version BETWEEN files_from AND files_to) THEN
    RAISE EXCEPTION 'the files of version % of table % are not known', at_version, of_table
      USING ERRCODE = '55000';
  END IF;
  RETURN QUERY SELECT * FROM timeline.files f WHERE table_id = of_table
    AND added <= at_version AND (removed IS NULL OR removed > at_version);
END $$;
"""

# What the collector writes of one table, in one transaction. A commit that is there already is left out.
_OBSERVE = """
CREATE OR REPLACE FUNCTION timeline.observe(seen jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE of_table bigint; event jsonb; which bigint; known bigint; events bigint := 0;
BEGIN
  -- Before the row of the table, as `complete` locks them.
  PERFORM pg_advisory_xact_lock(hashtext('timeline'));
  INSERT INTO timeline.tables (source, created, database, name, format, location)
    SELECT (seen->>'source')::bigint, (seen->>'created')::bigint,
      seen->>'database', seen->>'name', seen->>'format', seen->>'location'
    ON CONFLICT (source, created) DO UPDATE SET database = excluded.database, name = excluded.name,
      format = excluded.format, location = excluded.location
    RETURNING id INTO of_table;
  FOR event IN SELECT jsonb_array_elements(seen->'commits') LOOP
    SELECT version INTO known FROM timeline.instants
      WHERE table_id = of_table AND commit = event->>'commit';
    IF known IS NOT NULL THEN
      -- A writer that completes its own instant leaves the files to the collector.
      IF known > coalesce((SELECT files_to FROM timeline.tables WHERE id = of_table), 0) THEN
        PERFORM timeline.synchronize(of_table, known, event->'details');
      END IF;
      CONTINUE;
    END IF;
    -- The instant of a writer that has registered its commit, or a new one.
    SELECT instant INTO which FROM timeline.instants WHERE table_id = of_table AND state <> 'completed'
      AND instant::text = event->'details'->>'instant';
    which := coalesce(which, timeline.request(of_table, event->>'action'));
    IF (SELECT state FROM timeline.instants WHERE table_id = of_table AND instant = which) = 'requested' THEN
      PERFORM timeline.begin(of_table, which);
    END IF;
    PERFORM timeline.complete(of_table, which, event->>'commit', NULL, event->'details');
    events := events + 1;
  END LOOP;
  DELETE FROM timeline.instants WHERE table_id = of_table AND state <> 'completed' AND engine = 'hudi';
  INSERT INTO timeline.instants (table_id, instant, state, action, engine, heartbeat, lease)
    SELECT of_table, instant, state, action, 'hudi', to_timestamp(time_ms / 1000.0), interval '1 hour'
    FROM jsonb_to_recordset(seen->'open') open(instant bigint, state text, action text, time_ms bigint)
    ON CONFLICT (table_id, instant) DO NOTHING;
  UPDATE timeline.tables SET state = seen->>'state', fault = seen->>'fault', lag = seen->>'lag',
      dropped = CASE WHEN (seen->>'dropped')::boolean THEN clock_timestamp() END
    WHERE id = of_table;
  RETURN events;
END $$;

-- One table cannot keep others from being written: what is refused is its fault.
CREATE OR REPLACE FUNCTION timeline.observe(seen text, without_commits jsonb)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN timeline.observe(seen::jsonb);
EXCEPTION WHEN OTHERS THEN
  IF SQLSTATE !~ '^(22|23)' THEN
    RAISE;
  END IF;
  RETURN timeline.observe(without_commits
    || jsonb_build_object('fault', 'PostgreSQL refuses its commits: ' || SQLERRM));
END $$;

CREATE OR REPLACE FUNCTION timeline.forget(older_than interval) RETURNS void LANGUAGE sql AS $$
  DELETE FROM timeline.tables WHERE dropped < clock_timestamp() - older_than;
  DELETE FROM timeline.files f USING timeline.tables t WHERE t.id = f.table_id
    AND f.removed <= (SELECT max(version) FROM timeline.instants i
                      WHERE i.table_id = t.id AND i.observed < clock_timestamp() - older_than);
  UPDATE timeline.tables t SET files_from = least(files_to, greatest(files_from, (
    SELECT max(version) FROM timeline.instants i
      WHERE i.table_id = t.id AND i.observed < clock_timestamp() - older_than)));
  -- The newest one of a table stays: what the table looked like is still asked.
  DELETE FROM timeline.instants i USING timeline.tables t WHERE t.id = i.table_id
    AND i.state = 'completed' AND i.version < t.version AND i.observed < clock_timestamp() - older_than;
$$;
"""

_VIEWS = """
CREATE OR REPLACE VIEW timeline.commits AS
  SELECT i.number, i.committed, i.observed, t.database, t.name AS table, t.format, i.action, i.commit,
    i.version, i.author, i.engine, t.id AS table_id, i.instant,
    c.content - 'added' - 'removed' - 'whole' - 'time_ms' - 'author' - 'engine' AS details
  FROM timeline.instants i JOIN timeline.tables t ON t.id = i.table_id
  LEFT JOIN timeline.contents c ON (c.table_id, c.instant, c.state) = (i.table_id, i.instant, 'completed')
  WHERE i.state = 'completed';
CREATE OR REPLACE VIEW timeline.abandoned AS
  SELECT t.database, t.name AS table, t.format, i.instant, i.state, i.action, i.heartbeat,
    clock_timestamp() - i.heartbeat - i.lease AS overdue
  FROM timeline.instants i JOIN timeline.tables t ON t.id = i.table_id
  WHERE i.state <> 'completed' AND i.heartbeat + i.lease < clock_timestamp();
CREATE OR REPLACE FUNCTION timeline.at(moment timestamptz) RETURNS SETOF timeline.commits
LANGUAGE sql STABLE AS $$
  SELECT * FROM (
    SELECT DISTINCT ON (table_id) * FROM timeline.commits
      WHERE committed <= moment ORDER BY table_id, version DESC) newest
    WHERE action <> 'drop' ORDER BY database, "table";
$$;
"""

_OBJECTS = f"{_TABLES}{_FILES}{_STATES}{_OBSERVE}{_VIEWS}"
# Of a schema that is up to date, the comment is this digest; functions of another one are replaced.
DIGEST = hashlib.sha256(_OBJECTS.encode()).hexdigest()
IS_CURRENT = f"""SELECT jsonb_build_object(
  'current', coalesce(obj_description(to_regnamespace('timeline')) = '{DIGEST}', false))"""
SCRIPT = f"""SET client_min_messages = warning;
BEGIN;
SELECT FROM pg_advisory_xact_lock(hashtext('timeline schema'));
{_OBJECTS}
COMMENT ON SCHEMA timeline IS '{DIGEST}';
COMMIT;
"""
