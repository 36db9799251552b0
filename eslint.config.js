import js from '@eslint/js';
import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';
import { createTypeScriptImportResolver } from 'eslint-import-resolver-typescript';
import { importX } from 'eslint-plugin-import-x';

const nodeBuiltins = [...builtinModules, ...builtinModules.map((name) => `node:${name}`)];
const folder = (name) => [`**/${name}/**`];

/** Imports run one way; `except` lists the top-level folders that a folder may import. */
const topLevel = [
  'machine-config',
  'workflows',
  'activities',
  'workers',
  'ignition-server',
  'client',
  'deploy',
  'dev',
  'test',
];
function mayImport(from, allowed, extra = []) {
  const forbidden = topLevel.filter((name) => name !== from && !allowed.includes(name));
  return {
    files: [`${from}/**/*.ts`],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            ...forbidden.map((name) => ({
              group: [`**/${name}/**`],
              message: `${from}/ may not import ${name}/ (docs/architecture.md, layout).`,
            })),
            ...extra,
          ],
        },
      ],
    },
  };
}

const onlyContract = {
  regex: '/workflows/(?!contract/)',
  message: 'Of workflows/ only workflows/contract may be imported here.',
};

export default tseslint.config(
  { ignores: ['dist', 'coverage', 'node_modules', 'test/data', '**/*.js', '**/*.mjs', '!eslint.config.js'] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['eslint.config.js'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    plugins: { 'import-x': importX },
    settings: { 'import-x/resolver-next': [createTypeScriptImportResolver()] },
    rules: {
      'import-x/no-cycle': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      complexity: ['error', 14],
      'max-lines': ['error', { max: 330, skipBlankLines: true, skipComments: true }],
      'no-console': 'error',
    },
  },
  mayImport(
    'machine-config',
    [],
    [
      {
        group: [
          '@temporalio/*',
          '@kubernetes/*',
          'pino',
          'undici',
          'node:fs',
          'node:fs/*',
          'node:child_process',
          'node:os',
          'node:net',
          'node:http',
          'node:https',
        ],
        message: 'machine-config/ is pure: no I/O.',
      },
    ],
  ),
  {
    files: ['workflows/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          paths: nodeBuiltins.map((name) => ({ name, message: 'Workflows run in a sandbox without Node built-ins.' })),
          patterns: [
            {
              group: [
                'zod',
                'zod/*',
                'pino',
                '@kubernetes/*',
                'undici',
                '@temporalio/worker',
                '@temporalio/activity',
                '@temporalio/client',
              ],
              message: 'Kept out of the workflow bundle: memory for each cached workflow, and determinism.',
            },
            ...topLevel
              .filter((name) => name !== 'workflows')
              .map((name) => ({
                group: folder(name),
                allowTypeImports: true,
                message: 'Workflows import nothing but types from outside workflows/.',
              })),
          ],
        },
      ],
    },
  },
  mayImport('activities', ['machine-config', 'workflows'], [onlyContract]),
  mayImport('ignition-server', ['machine-config', 'workflows', 'activities'], [onlyContract]),
  mayImport('client', ['machine-config', 'workflows', 'activities', 'deploy', 'dev'], [onlyContract]),
  mayImport('workers', ['machine-config', 'workflows', 'activities']),
  mayImport('dev', ['machine-config', 'workflows', 'activities', 'client'], [onlyContract]),
  {
    files: ['test/**/*.ts'],
    rules: { '@typescript-eslint/no-non-null-assertion': 'off', 'max-lines': 'off', complexity: 'off' },
  },
  { files: ['client/**/*.ts', 'dev/**/*.ts'], rules: { 'no-console': 'off' } },
  { files: ['eslint.config.js'], ...tseslint.configs.disableTypeChecked },
);
