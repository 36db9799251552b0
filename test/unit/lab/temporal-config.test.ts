import { describe, expect, test } from 'vitest';
import { parseTemporalDevConfig, readTemporalDevConfig, TemporalConfigError } from '../../../dev/temporal-config.js';
import { SEARCH_ATTRIBUTES } from '../../../workflows/contract/search-attributes.js';

function problemsOf(text: string): readonly string[] {
  try {
    parseTemporalDevConfig(text, 't.yaml');
  } catch (error) {
    if (error instanceof TemporalConfigError) return error.problems;
    throw error;
  }
  return [];
}

describe('temporal-dev.yaml', () => {
  test('of this project is valid and registers every search attribute of the contract as Keyword', async () => {
    const config = await readTemporalDevConfig();
    const names = Object.values(SEARCH_ATTRIBUTES).map(({ name }) => name);
    expect(names).toHaveLength(4);
    for (const name of names) expect(config.searchAttributes[name]).toBe('Keyword');
    expect(config.dynamicConfig['matching.numTaskqueueReadPartitions']).toBe(1);
    expect(config.dynamicConfig['frontend.namespaceCount']).toBeGreaterThan(1_200);
  });

  test('may be empty: everything has a default, and ports are free ones', () => {
    const config = parseTemporalDevConfig('# nothing\n', 't.yaml');
    expect(config.server).toEqual({
      ip: '127.0.0.1',
      port: 0,
      namespace: 'default',
      retention: 7 * 24 * 3600,
      databaseFile: 'temporal.db',
    });
    expect(config.ui).toEqual({ enabled: true, port: 0 });
  });

  test('gives retention in seconds', () => {
    expect(parseTemporalDevConfig('server: {retention: 36h}', 't.yaml').server.retention).toBe(36 * 3600);
  });

  test('takes dynamic configuration as JSON values', () => {
    const text = 'dynamicConfig:\n  a.list: [1, {b: true}]\n  a.text: x\n';
    expect(parseTemporalDevConfig(text, 't.yaml').dynamicConfig).toEqual({ 'a.list': [1, { b: true }], 'a.text': 'x' });
  });

  test.each([
    ['server:\n  port: 70000\n', 't.yaml:2: server.port: must be a whole number from 0 to 65535'],
    ['server:\n  port: "7233"\n', 't.yaml:2: server.port: must be a whole number from 0 to 65535'],
    ['server:\n  port: 1.5\n', 't.yaml:2: server.port: must be a whole number from 0 to 65535'],
    ['server:\n  ip: 300.1.1.1\n', 't.yaml:2: server.ip: must be an IP address or localhost'],
    ['server:\n  retention: 7\n', 't.yaml:2: server.retention: must be a text such as 36h or 7d'],
    ['server:\n  retention: 7w\n', 't.yaml:2: server.retention: must be a number of hours or days such as 36h or 7d'],
    ['server:\n  namespace: a b\n', 't.yaml:2: server.namespace: must be 2 to 255 letters, digits, dots, - or _'],
    ['server:\n  databaseFile: ""\n', 't.yaml:2: server.databaseFile: must name a file'],
    ['ui:\n  enabled: "no"\n', 't.yaml:2: ui.enabled: must be true or false'],
    ['ui: 5\n', 't.yaml:1: ui: must be a map of fields'],
    [
      'searchAttributes:\n  DrydockPool: keyword\n',
      't.yaml:2: searchAttributes.DrydockPool: must be one of Text, Keyword, Int, Double, Bool, Datetime, KeywordList',
    ],
    [
      'searchAttributes:\n  1st: Keyword\n',
      't.yaml:2: searchAttributes.1st: this name must be letters, digits and _, beginning with a letter',
    ],
    ['sqlitePragmas:\n  journal_mode: [wal]\n', 't.yaml:2: sqlitePragmas.journal_mode: must be a text or a number'],
    [
      'dynamicConfig:\n  namespaceCount: 1\n',
      't.yaml:2: dynamicConfig.namespaceCount: this name must be a dynamic configuration key such as frontend.namespaceCount',
    ],
    ['- a\n', 't.yaml:1: must be a map of fields'],
  ])('names line, field and what is allowed: %j', (text, problem) => {
    expect(problemsOf(text)).toEqual([problem]);
  });

  test('names a misspelt field where it stands, with the fields that exist', () => {
    expect(problemsOf('server:\n  ip: ::1\n  prot: 1\nuserInterface: {}\n')).toEqual([
      't.yaml:3: server.prot: is not a field; allowed here: ip, port, namespace, retention, databaseFile',
      't.yaml:4: userInterface: is not a field; allowed here: server, ui, searchAttributes, sqlitePragmas, dynamicConfig',
    ]);
  });

  test('reports everything that is wrong at once', () => {
    expect(problemsOf('server:\n  port: -1\nui:\n  port: x\n  enabled: 1\n')).toHaveLength(3);
  });

  test('that is not YAML is said with the line', () => {
    const [problem] = problemsOf('server:\n  ip: "127\n');
    expect(problem).toMatch(/^t\.yaml:\d+: not YAML: /);
  });

  test('that is not there is said with the path', async () => {
    await expect(readTemporalDevConfig('/nonexistent/t.yaml')).rejects.toThrow(
      /^\/nonexistent\/t\.yaml: cannot be read/,
    );
  });
});
