// Fails when a page loads more than 300 kB of compressed JavaScript before its first chart, or when the chart
// library, which is loaded with the first chart, has more than 450 kB.
import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const MAX_BYTES = 300_000;
const MAX_LIBRARY_BYTES = 450_000;
const folder = fileURLToPath(new URL('../dist/', import.meta.url));
const manifest = JSON.parse(readFileSync(`${folder}.vite/manifest.json`, 'utf8'));

/** The files that a chunk needs before it runs, itself included. */
function needed(key, files = new Set()) {
  const { file, imports = [] } = manifest[key];
  if (!files.has(file)) {
    files.add(file);
    imports.forEach((imported) => needed(imported, files));
  }
  return files;
}

const sizeOf = (files) => [...files].reduce((sum, file) => sum + statSync(`${folder}${file}.gz`).size, 0);

const keys = Object.keys(manifest);
const entry = keys.find((key) => manifest[key].isEntry);
const pages = keys.filter((key) => key.startsWith('src/routes/'));
const sizes = pages.map((key) => [sizeOf(needed(key, needed(entry))), key]).sort(([a], [b]) => b - a);
const [[bytes, heaviest]] = sizes;
const libraryBytes = sizeOf(keys.filter((key) => key.includes('plotly')).map((key) => manifest[key].file));

console.log(
  `${Math.round(bytes / 1000)} kB of compressed JavaScript before the first chart of ${heaviest} (at most 300 kB)`,
);
console.log(`${Math.round(libraryBytes / 1000)} kB of compressed chart library (at most 450 kB)`);
if (bytes > MAX_BYTES || libraryBytes === 0 || libraryBytes > MAX_LIBRARY_BYTES) process.exitCode = 1;
