// Writes a gzip copy next to each built text file; the service sends it to browsers that accept gzip.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

const folder = fileURLToPath(new URL('../dist/assets/', import.meta.url));

for (const name of readdirSync(folder).filter((file) => /\.(js|css|svg)$/.test(file))) {
  writeFileSync(`${folder}${name}.gz`, gzipSync(readFileSync(folder + name), { level: 9 }));
}
