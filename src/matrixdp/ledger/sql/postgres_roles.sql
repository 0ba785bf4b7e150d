-- Roles of the ledger in schema {schema}. Run this as the owner of the ledger (who created it), with the right to
-- create roles, or as a superuser. It may be run again.
--   {schema}_reader   may read balances and the history, and verify
--   {schema}_writer   may also charge releases and store them, and record the steps of streams
--   {schema}_curator  may also register data sets, divide totals, settle a restored ledger and move the ledger
-- Nobody may alter or delete entries; the owner and superusers could remove the triggers, and keep out of daily use.
DO $roles$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['{schema}_reader', '{schema}_writer', '{schema}_curator'] LOOP
        IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = role) THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        END IF;
    END LOOP;
END
$roles$;
GRANT USAGE ON SCHEMA {schema} TO {schema}_reader, {schema}_writer, {schema}_curator;
GRANT SELECT ON {schema}.ledger, {schema}.entries, {schema}.head, {schema}.counters, {schema}.unfinished
    TO {schema}_reader, {schema}_writer, {schema}_curator;
GRANT INSERT ON {schema}.entries TO {schema}_writer, {schema}_curator;
GRANT EXECUTE ON FUNCTION {schema}.lock_head() TO {schema}_writer, {schema}_curator;
DROP POLICY IF EXISTS writers_charge ON {schema}.entries;
CREATE POLICY writers_charge ON {schema}.entries FOR INSERT TO {schema}_writer
    WITH CHECK (kind IN ('charge', 'release', 'step'));
DROP POLICY IF EXISTS curators_decide ON {schema}.entries;
CREATE POLICY curators_decide ON {schema}.entries FOR INSERT TO {schema}_curator
    WITH CHECK (kind <> 'create');
-- Then give a role to each user:
--   GRANT {schema}_writer TO ann;
