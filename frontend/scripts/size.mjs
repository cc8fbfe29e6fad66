// Fails when the built pages bring more than 300 kB of compressed JavaScript, the chart library left out: it
// comes when a chart is first shown. All pages count, though each is fetched only when it is opened.
import { readdirSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MOST_BYTES = 300_000;
const folder = fileURLToPath(new URL('../dist/assets/', import.meta.url));

const scripts = readdirSync(folder).filter((name) => name.endsWith('.js.gz') && !name.startsWith('plotly'));
const bytes = scripts.reduce((sum, name) => sum + statSync(folder + name).size, 0);

console.log(
  `${Math.round(bytes / 1000)} kB of compressed JavaScript before the first chart (at most 300 kB)`,
);
if (bytes === 0 || bytes > MOST_BYTES) process.exitCode = 1;
