import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { isAlias, isCollection, isMap, isScalar, LineCounter, parseDocument, type Document } from 'yaml';
import { z } from 'zod';

const port = z.int('must be a whole number from 0 to 65535').min(0).max(65_535);
const SEARCH_ATTRIBUTE_TYPES = ['Text', 'Keyword', 'Int', 'Double', 'Bool', 'Datetime', 'KeywordList'] as const;
const RETENTION_UNIT_SECONDS = { h: 3_600, d: 86_400 } as const;

/** `36h`, `7d` -> seconds. */
const retention = z
  .string('must be a text such as 36h or 7d')
  .regex(/^[1-9]\d{0,4}[hd]$/, 'must be a number of hours or days such as 36h or 7d')
  .transform((text) => Number(text.slice(0, -1)) * RETENTION_UNIT_SECONDS[text.endsWith('d') ? 'd' : 'h']);

const identifier = z
  .string()
  .regex(/^[A-Za-z][A-Za-z0-9_]*$/, 'must be letters, digits and _, beginning with a letter');
const dynamicKey = z
  .string()
  .regex(/^[A-Za-z]+(\.[A-Za-z0-9]+)+$/, 'must be a dynamic configuration key such as frontend.namespaceCount');

const server = z.strictObject({
  ip: z.union([z.ipv4(), z.ipv6(), z.literal('localhost')], 'must be an IP address or localhost').default('127.0.0.1'),
  port: port.default(0),
  namespace: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/, 'must be 2 to 255 letters, digits, dots, - or _')
    .default('default'),
  retention: retention.default(7 * RETENTION_UNIT_SECONDS.d),
  databaseFile: z.string().min(1, 'must name a file').default('temporal.db'),
});

const ui = z.strictObject({ enabled: z.boolean().default(true), port: port.default(0) });

/** temporal-dev.yaml: what the lab's Temporal server is started from. */
export const temporalDevConfigSchema = z.strictObject({
  server: server.prefault({}),
  ui: ui.prefault({}),
  searchAttributes: z.record(identifier, z.enum(SEARCH_ATTRIBUTE_TYPES)).default({}),
  sqlitePragmas: z.record(identifier, z.union([z.string(), z.number()], 'must be a text or a number')).default({}),
  dynamicConfig: z.record(dynamicKey, z.json()).default({}),
});

export type TemporalDevConfig = z.infer<typeof temporalDevConfigSchema>;

/** All that is wrong with a temporal-dev.yaml, a line each: `temporal-dev.yaml:4: server.port: must be ...`. */
export class TemporalConfigError extends Error {
  override readonly name = 'TemporalConfigError';
  readonly problems: readonly string[];
  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** The file at the root of the project. */
export const TEMPORAL_DEV_FILE = fileURLToPath(new URL('../temporal-dev.yaml', import.meta.url));

export async function readTemporalDevConfig(file = TEMPORAL_DEV_FILE): Promise<TemporalDevConfig> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new TemporalConfigError([
      `${file}: cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`,
    ]);
  });
  return parseTemporalDevConfig(text, file);
}

/** @param file as it is named in the errors */
export function parseTemporalDevConfig(text: string, file: string): TemporalDevConfig {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    throw new TemporalConfigError(
      document.errors.map((error) => `${file}:${lines.linePos(error.pos[0]).line}: not YAML: ${error.message}`),
    );
  }
  const result = temporalDevConfigSchema.safeParse(document.toJS() ?? {});
  if (result.success) return result.data;
  throw new TemporalConfigError(
    result.error.issues
      .flatMap((issue) => describeIssue(issue))
      .map(({ path, what }) => {
        const line = lineOf(document, path, lines);
        return `${file}:${line}: ${path.length === 0 ? '' : `${path.join('.')}: `}${what}`;
      }),
  );
}

interface Problem {
  readonly path: readonly PropertyKey[];
  readonly what: string;
}

function describeIssue(issue: z.core.$ZodIssue): Problem[] {
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({
        path: [...issue.path, key],
        what: `is not a field; allowed here: ${allowedFields(issue.path).join(', ')}`,
      }));
    case 'invalid_key':
      return [{ path: issue.path, what: `this name ${issue.issues[0]?.message ?? 'is not allowed'}` }];
    case 'invalid_value':
      return [{ path: issue.path, what: `must be one of ${issue.values.map(String).join(', ')}` }];
    case 'invalid_type':
      return [
        {
          path: issue.path,
          what: issue.message.startsWith('must')
            ? issue.message
            : `must be ${TYPE_NAMES[issue.expected] ?? issue.expected}`,
        },
      ];
    case 'too_big':
    case 'too_small':
      return [
        {
          path: issue.path,
          what: issue.origin === 'string' ? issue.message : 'must be a whole number from 0 to 65535',
        },
      ];
    default:
      return [{ path: issue.path, what: issue.message }];
  }
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  boolean: 'true or false',
  object: 'a map of fields',
  record: 'a map of names and values',
  string: 'a text',
};

function allowedFields(path: readonly PropertyKey[]): string[] {
  const fields = { server, ui } as const;
  const [section] = path;
  if (section === 'server' || section === 'ui') return Object.keys(fields[section].shape);
  return Object.keys(temporalDevConfigSchema.shape);
}

/** The line of the field itself; where it is missing, of the nearest thing around it. */
function lineOf(document: Document, path: readonly PropertyKey[], lines: LineCounter): number {
  let node: unknown = document.contents;
  let offset = 0;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (!isCollection(node)) break;
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => (isScalar(key) ? String(key.value) : String(key)) === String(step));
      if (pair === undefined) break;
      if (isScalar(pair.key) && pair.key.range) offset = pair.key.range[0];
      node = pair.value;
    } else {
      node = node.get(step, true);
    }
  }
  return lines.linePos(offset).line;
}
