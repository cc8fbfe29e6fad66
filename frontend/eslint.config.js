import js from '@eslint/js';
import hooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import { defineConfig, globalIgnores } from 'eslint/config';
import ts from 'typescript-eslint';

/** Routes import features, features components, these the API's modules, and these lib; never the reverse. */
const forbid = (...groups) => ({
  'no-restricted-imports': [
    'error',
    {
      patterns: groups.map((group) => ({
        group: [group],
        message: 'Imports go from routes to features, components, api and lib, not the reverse.',
      })),
    },
  ],
});

export default defineConfig(
  globalIgnores(['dist', 'src/api/generated.ts', 'src/routeTree.gen.ts']),
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true }, globals: globals.browser },
    rules: {
      '@typescript-eslint/consistent-type-definitions': ['error', 'type'],
      '@typescript-eslint/no-unused-vars': ['error', { ignoreRestSiblings: true }],
      // `||` is intended where an empty string counts as missing.
      '@typescript-eslint/prefer-nullish-coalescing': ['error', { ignorePrimitives: { string: true } }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      '@typescript-eslint/only-throw-error': [
        'error',
        { allow: [{ from: 'package', package: '@tanstack/router-core', name: 'Redirect' }] },
      ],
    },
  },
  {
    // A name says what the thing is.
    files: ['src/**', 'scripts/**'],
    rules: { 'id-denylist': ['error', 'each', 'found', 'its', 'one', 'some', 'there'] },
  },
  { files: ['src/lib/**'], rules: forbid('@/api/**', '@/components/**', '@/features/**', '@/routes/**') },
  { files: ['src/api/**'], rules: forbid('@/components/**', '@/features/**', '@/routes/**') },
  { files: ['src/components/**'], rules: forbid('@/features/**', '@/routes/**') },
  { files: ['src/features/**'], rules: forbid('@/features/**', '@/routes/**') },
  { files: ['*.js', 'scripts/**'], languageOptions: { globals: globals.node } },
  { files: ['public/**'], languageOptions: { globals: globals.browser } },
);
