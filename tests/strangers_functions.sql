-- What somebody with SQL in the metastore's database can make there: names that a session prefers to PostgreSQL's own,
-- because their arguments are of the types that Hive's columns have. Each tells the server's log who has called it.
create function public.kit_seen() returns void language plpgsql as $$ begin
  raise log 'kit_seen % % %', session_user, current_setting('is_superuser'), current_setting('application_name');
end $$;
create function public.kit_equal(character varying, character varying) returns boolean language plpgsql as $$ begin
  perform public.kit_seen();
  return $1::text operator(pg_catalog.=) $2::text;
end $$;
create operator public.= (leftarg = character varying, rightarg = character varying, function = public.kit_equal);
create function public.kit_joined(text, character varying, text) returns text language plpgsql as $$ begin
  perform public.kit_seen();
  return pg_catalog.concat_ws($3, $1, $2);
end $$;
create aggregate public.string_agg(character varying, text) (sfunc = public.kit_joined, stype = text);
-- The console's.
create function public.json_build_object(
  text, character varying, text, character varying, text, text, text, text
) returns json language plpgsql as $$ begin
  perform public.kit_seen();
  return pg_catalog.json_build_object($1, $2, $3, $4, $5, $6, $7, $8);
end $$;
-- The backup's, of a database.
create function public.jsonb_build_object(
  text, character varying, text, character varying, text, character varying, text, character varying,
  text, character varying, text, jsonb
) returns jsonb language plpgsql as $$ begin
  perform public.kit_seen();
  return pg_catalog.jsonb_build_object($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
end $$;
