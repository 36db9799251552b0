import type { z } from 'zod';
import { ignitionSchema, needsNewestVersion, type IgnitionConfig, type IgnitionUser } from './config.js';
import { Findings, isList, isRecord, isTooDeep, type Finding } from './findings.js';
import { withKnownKeys } from './keys.js';
import { ignition2Schema, translateSpec2 } from './spec2.js';
import { parseTyped } from './typing.js';
import { validateConfig } from './validate.js';
import { checkVersion, DEFAULT_OUTPUT_VERSION } from './versions.js';

export interface ParsedIgnition {
  /** Absent where the config is empty, and where there are problems. Without nulls and empty objects, in the model of 3.5. */
  readonly config?: IgnitionConfig;
  readonly problems: readonly Finding[];
  readonly warnings: readonly Finding[];
}

/**
 * Reads the Ignition document of a MachineConfig, of any accepted version, and checks it by Ignition's rules and
 * ours. Never throws, whatever the input. Findings have paths from `prefix` on: `spec.config.storage.files[0]`.
 */
export function parseIgnition(input: unknown, prefix: readonly string[] = ['spec']): ParsedIgnition {
  const findings = new Findings({ config: input }, prefix);
  const config = readConfig(input, findings, prefix);
  return {
    ...(config === undefined || findings.refused ? {} : { config }),
    problems: findings.problems,
    warnings: findings.warnings,
  };
}

function readConfig(input: unknown, findings: Findings, prefix: readonly string[]): IgnitionConfig | undefined {
  if (input === undefined || input === null) return undefined;
  if (!isRecord(input)) {
    findings.refuse(['config'], 'must be an object with ignition, storage, systemd and passwd');
    return undefined;
  }
  if (isTooDeep(input)) {
    findings.refuse(['config'], 'is nested too deep to be an Ignition config');
    return undefined;
  }
  const { ignition } = input;
  const version = isRecord(ignition) ? (ignition.version ?? undefined) : undefined;
  if (version === undefined && isEmptyDocument(input)) return undefined;
  const checked = checkVersion(version);
  if (!checked.accepted) {
    findings.refuse(['config', 'ignition', 'version'], checked.message);
    return undefined;
  }
  const config =
    checked.major === 2
      ? translate(input, findings, prefix)
      : read(ignitionSchema, input, { findings, prefix, minor: checked.minor });
  if (config === undefined) return undefined;
  const merged = withSingleUsers(config, findings);
  validateConfig(merged, findings);
  return { ...merged, ignition: { ...merged.ignition, version: outputVersion(merged) } };
}

interface Reading {
  readonly findings: Findings;
  readonly prefix: readonly string[];
  readonly minor?: number;
}

function read<S extends z.ZodType>(schema: S, input: unknown, reading: Reading): z.output<S> | undefined {
  const { findings, prefix, minor } = reading;
  const known = withKnownKeys(schema, input, ['config'], { findings, ...(minor === undefined ? {} : { minor }) });
  // Positions in lists are kept, so paths in the cleaned document are those of the document that the user wrote.
  const typing = new Findings(known, [...prefix, 'config']);
  const parsed = parseTyped(schema, known, typing);
  // `user: boot` for `name: boot` is one mistake, not an unknown key and a missing one.
  const parents = findings.problems.map(({ path }) => parentOf(path));
  const isConsequence = ({ path, message }: Finding) =>
    message.includes('is missing') && parents.includes(parentOf(path));
  findings.problems.push(...typing.problems.filter((problem) => !isConsequence(problem)));
  return parsed;
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('[')));
}

function translate(input: unknown, findings: Findings, prefix: readonly string[]): IgnitionConfig | undefined {
  const parsed = read(ignition2Schema, input, { findings, prefix });
  return parsed === undefined ? undefined : translateSpec2(parsed, findings);
}

/** `config: {}`, also with empty sections: a MachineConfig that only sets kernel arguments or the image may have it. */
function isEmptyDocument(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return true;
  if (isList(value)) return value.length === 0;
  return isRecord(value) && Object.values(value).every((entry) => isEmptyDocument(entry));
}

/** Lowest of the two versions that we write which has all fields of the config. */
export function outputVersion(config: IgnitionConfig): string {
  return needsNewestVersion(config) ? '3.5.0' : DEFAULT_OUTPUT_VERSION;
}

/** A user or key that is listed twice is meant once: united in order, with a warning. Ignition would refuse it. */
function withSingleUsers(config: IgnitionConfig, findings: Findings): IgnitionConfig {
  const users = new Map<string, IgnitionUser>();
  const at = ['config', 'passwd', 'users'];
  config.passwd?.users?.forEach((user, index) => {
    const earlier = users.get(user.name);
    if (earlier !== undefined) findings.warn([...at, index], 'the user is listed twice; put both into one entry');
    const keys = [...(earlier?.sshAuthorizedKeys ?? []), ...(user.sshAuthorizedKeys ?? [])];
    const unique = [...new Set(keys)];
    if (earlier === undefined && unique.length < keys.length) {
      findings.warn([...at, index, 'sshAuthorizedKeys'], 'the same key is listed twice; it counts once');
    }
    users.set(user.name, {
      ...earlier,
      ...user,
      ...(unique.length === 0 ? {} : { sshAuthorizedKeys: unique }),
    });
  });
  if (users.size === 0) return config;
  return { ...config, passwd: { ...config.passwd, users: [...users.values()] } };
}
