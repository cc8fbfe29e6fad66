// Generates src/api/generated.ts and src/lib/schemas.json from the service's OpenAPI document, which is the given
// file or printed by Python, src/lib/games.json from the table of games, and src/routeTree.gen.ts from the files in
// src/routes. A file that would not change keeps its time.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Generator, getConfig } from '@tanstack/router-generator';
import openapiTS, { astToString } from 'openapi-typescript';

const root = fileURLToPath(new URL('../../', import.meta.url));
const python = `${root}.venv/bin/python`;

const print = () =>
  execFileSync(python, ['-m', 'backend.openapi'], { cwd: root, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 });
const [file] = process.argv.slice(2);
const document = JSON.parse(file ? readFileSync(file, 'utf8') : print());
const { RunFields, RunChanges, StopSpec, EvaluationRequest, SweepSpec } = document.components.schemas;

const RUN_FIELDS = ['name', 'group', 'project', 'notes', 'tags', 'seed', 'seeds', 'priority'];

/** Properties of a schema, without what only readers of the document need. */
function bounds({ properties }, wanted) {
  const unwanted = ['title', 'description', 'examples', 'default'];
  const plain = (schema) =>
    Object.fromEntries(Object.entries(schema).filter(([key]) => !unwanted.includes(key)));
  return { properties: Object.fromEntries(wanted.map((name) => [name, plain(properties[name])])) };
}

const schemas = {
  RunFields: bounds(RunFields, RUN_FIELDS),
  RunChanges: bounds(RunChanges, ['return_metric']),
  StopSpec,
  EvaluationRequest: bounds(EvaluationRequest, ['episodes', 'seed']),
  SweepSpec: bounds(SweepSpec, ['max_seeds', 'n_configurations']),
};

/** The games whose title is more than the words of their id, such as Q*bert. Titles contain no commas. */
function irregularTitles(table) {
  const rows = table.trim().split(/\r?\n/).slice(1);
  const titles = rows.map((row) => row.split(','));
  const words = (game) => game.replace(/([a-z])(?=[A-Z])/g, '$1 ');
  return Object.fromEntries(
    titles.flatMap(([game, title]) => (words(game) === title ? [] : [[game, title]])),
  );
}

const games = readFileSync(`${root}backend/specs/environments/atari_games.csv`, 'utf8');

const files = {
  'api/generated.ts': `// Generated from the service's OpenAPI document.\n\n${astToString(await openapiTS(document))}`,
  // Forms are built from JSON Schemas; the catalogue contains all but these. Of the fields of a run, of an
  // evaluation and of a sweep, forms need the bounds.
  'lib/schemas.json': `${JSON.stringify(schemas, null, 2)}\n`,
  'lib/games.json': `${JSON.stringify(irregularTitles(games), null, 2)}\n`,
};

for (const [name, text] of Object.entries(files)) {
  const target = `${root}frontend/src/${name}`;
  if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text);
}

const frontend = `${root}frontend`;
await new Generator({ config: getConfig({}, frontend), root: frontend }).run();
