import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { tanstackRouter } from '@tanstack/router-plugin/vite';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const service = process.env.CALLBOARD_URL ?? 'http://127.0.0.1:8642';

/** Runs the page's first script as soon as it is there, not after the scripts beside which it makes requests. */
const startEarly: Plugin = {
  name: 'start-early',
  transformIndexHtml: {
    order: 'post',
    handler: (html, { bundle }) => {
      if (!bundle) return html; // of the server for development
      const start = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'start');
      if (!start) throw new Error('There is no chunk "start".');
      // After the styles that all pages share, which those of a page may override.
      const src = `/${start.fileName}`;
      return [
        { tag: 'script', attrs: { type: 'module', async: true, crossorigin: true, src }, injectTo: 'head' },
      ];
    },
  },
};

const TESTS = 'src/**/*.test.{ts,tsx}';
/** Tests that replace or reload modules: those in the same process would get them, too. */
const reloadingTests = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.test\.tsx?$/.test(file))
  .map((file) => `src/${file.replaceAll('\\', '/')}`)
  .filter((file) => /vi\.(mock|resetModules)\(|await import\(/.test(readFileSync(file, 'utf8')));

export default defineConfig({
  // Configured by tsr.config.json.
  plugins: [tanstackRouter(), react(), startEarly],
  experimental: {
    // The page may be shown at any address: it names its files from the root, or as the service changes it. Scripts
    // find each other by their own addresses: only the running service knows the base path of a proxy.
    renderBuiltUrl: (file, { hostType }) => (hostType === 'html' ? `/${file}` : { relative: true }),
  },
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    target: 'es2024',
    // data: URLs would need a wider Content Security Policy than 'self'.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 5000,
    // jsPDF loads them for HTML and for its own reading of SVG, which nothing asks for.
    rolldownOptions: {
      external: ['canvg', 'dompurify', 'html2canvas'],
      output: {
        codeSplitting: {
          // What most pages need in one file: each file costs a page a request before its first paint.
          groups: [
            {
              name: 'start',
              test: /src\/(start|pages|lib\/base|api\/pageSecret)\.ts$|vite\/preload-helper/,
              priority: 1,
            },
            { name: 'shared', minShareCount: 4 },
          ],
        },
      },
    },
    manifest: true, // scripts/size.mjs reads which files a page loads
  },
  server: { proxy: { '/api': { target: service, ws: true }, '/login': service, '/help': service } },
  test: {
    environment: 'happy-dom',
    // Most of the time of a file by itself is that of its imports: the others share a process and its modules.
    projects: [
      {
        extends: true,
        test: { name: 'shared', include: [TESTS], exclude: reloadingTests, isolate: false },
      },
      { extends: true, test: { name: 'isolated', include: reloadingTests } },
    ],
    setupFiles: ['src/vitest.setup.ts'],
    testTimeout: 240_000,
    hookTimeout: 240_000,
  },
});
