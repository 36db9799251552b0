import Handlebars from 'handlebars';

/** What templates may do besides showing values; nothing else can be called. */
const BLOCKS = ['if', 'unless', 'each', 'with'] as const;
const FUNCTIONS = ['eq', 'has', 'indent', 'json', 'text'] as const;
const MAX_TEMPLATE_CHARACTERS = 1_048_576;

export type Rendered = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly error: string };

/**
 * Fills in one template (docs/decisions/0019-templates.md). The template is data of an administrator: it can read the
 * own keys of `values`, compare and repeat, and nothing else. A value that is not there is an error, never an empty text.
 */
export function renderTemplate(template: string, values: Readonly<Record<string, unknown>>): Rendered {
  if (template.length > MAX_TEMPLATE_CHARACTERS) return { ok: false, error: 'has more than 1 MiB; make it smaller' };
  try {
    const program = ENGINE.parse(template);
    new Tightened().accept(program);
    const filled: unknown = ENGINE.compile(program, COMPILE_OPTIONS)(guarded(values, ''), RUNTIME_OPTIONS);
    return { ok: true, text: String(filled) };
  } catch (error) {
    return { ok: false, error: firstWords(error) };
  }
}

const COMPILE_OPTIONS: CompileOptions = {
  strict: true,
  // What comes out is no HTML.
  noEscape: true,
  preventIndent: true,
  knownHelpersOnly: true,
  knownHelpers: {
    ...Object.fromEntries(FUNCTIONS.map((name) => [name, true])),
    helperMissing: false,
    blockHelperMissing: false,
    log: false,
    lookup: false,
  },
};
const RUNTIME_OPTIONS: Handlebars.RuntimeOptions = {
  allowProtoPropertiesByDefault: false,
  allowProtoMethodsByDefault: false,
};

/** One of its own: nothing that anybody registers elsewhere can be called from a template. */
function makeEngine(): typeof Handlebars {
  const engine = Handlebars.create();
  const blocks: readonly string[] = BLOCKS;
  for (const name of Object.keys(engine.helpers)) {
    if (!blocks.includes(name)) engine.unregisterHelper(name);
  }
  engine.registerHelper({
    text: (value: unknown) => textOf(value),
    eq: (one: unknown, other: unknown) => textOf(one) === textOf(other),
    has: (object: unknown, key: unknown) =>
      typeof object === 'object' && object !== null && Object.hasOwn(object, textOf(key)),
    indent: (columns: unknown, value: unknown) =>
      textOf(value)
        .trimEnd()
        .replaceAll('\n', `\n${' '.repeat(Math.min(Number(columns), 80))}`),
    json: (value: unknown) => JSON.stringify(value),
  });
  return engine;
}

const ENGINE = makeEngine();

/** A list or object is no text; printing it as `[object Object]` would hide a mistake. */
function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error(value === undefined || value === null ? 'a value is empty' : 'a list or object is no text; use json');
}

/**
 * Turns every `{{value}}` into `{{text value}}`: without it, the engine prints what is no text somehow, and adds two
 * neighbouring numbers. Refuses what would reach outside of the template.
 */
class Tightened extends Handlebars.Visitor {
  readonly mutating = true;

  override MustacheStatement(statement: hbs.AST.MustacheStatement): hbs.AST.MustacheStatement {
    super.MustacheStatement(statement);
    const { path, params } = statement;
    if (params.length > 0) return statement;
    const text: hbs.AST.PathExpression = {
      type: 'PathExpression',
      data: false,
      depth: 0,
      parts: ['text'],
      original: 'text',
      loc: path.loc,
    };
    return { ...statement, path: text, params: [path] };
  }

  override BlockStatement(block: hbs.AST.BlockStatement): void {
    const blocks: readonly string[] = BLOCKS;
    if (!blocks.includes(block.path.original)) {
      refuse(block, `{{#${block.path.original}}} is no block; known are ${BLOCKS.join(', ')}`);
    }
    super.BlockStatement(block);
  }

  override PartialStatement(node: hbs.AST.Node): void {
    refuse(node, 'a template cannot include another one');
  }
  override PartialBlockStatement(node: hbs.AST.Node): void {
    refuse(node, 'a template cannot include another one');
  }
  override Decorator(node: hbs.AST.Node): void {
    refuse(node, 'a template has no decorators');
  }
  override DecoratorBlock(node: hbs.AST.Node): void {
    refuse(node, 'a template has no inline parts');
  }
}

function refuse({ loc }: hbs.AST.Node, why: string): never {
  throw new Error(`line ${loc.start.line}: ${why}`);
}

/** Lets nothing be read that is not there: own keys only, and an absent one throws with its name. */
function guarded(value: unknown, place: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  return new Proxy(value, {
    // The engine asks before it reads, and words its own error by printing the whole object.
    has: () => true,
    get: (target, key) => {
      // The engine compares objects with texts by `!=`: one is never the other.
      if (key === Symbol.toPrimitive) return () => Symbol(place);
      if (typeof key === 'symbol') return Reflect.get(target, key) as unknown;
      // For json, which asks every object.
      if (key === 'toJSON') return undefined;
      if (!Object.hasOwn(target, key)) throw new Error(`there is no value ${place}${key}`);
      return guarded(Reflect.get(target, key), `${place}${key}.`);
    },
  });
}

/** Parse errors draw the place on several lines. */
function firstWords(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  if (message.startsWith('Parse error')) return message.split('\n', 2).join(' ');
  const helper = /unknown helper (?<name>\S+) - (?<line>\d+):/u.exec(message)?.groups;
  if (helper === undefined) return message;
  const known = [...BLOCKS, ...FUNCTIONS].join(', ');
  return `line ${helper['line'] ?? ''}: there is no ${helper['name'] ?? ''}; known are ${known}`;
}
