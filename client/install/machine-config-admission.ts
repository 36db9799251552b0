import type { ApiFlavour } from '../../machine-config/api/flavour.js';

/*
 * What CEL can say of a MachineConfig, in the words of the render: so much is refused although no control worker runs.
 * Where a field is of another type than it should be, an expression fails and the webhook or the render says so.
 */

interface Variable {
  readonly name: string;
  readonly expression: string;
}

interface Validation {
  readonly expression: string;
  readonly messageExpression: string;
  readonly reason: 'Invalid';
}

const config = 'object.spec.config';
const listAt = (section: string, list: string): string =>
  `has(object.spec) && has(object.spec.config) && object.spec.config != null && has(${config}.${section}) && ${config}.${section} != null && has(${config}.${section}.${list}) && ${config}.${section}.${list} != null ? ${config}.${section}.${list} : []`;

/** `spec.config.storage.files[2].mode: /etc/a: …`, of the first entry of `wrong`. */
const message = (place: { section: string; list: string; field: string; label: string }, what: string): string => {
  const { section, list, field, label } = place;
  const first = `variables.wrong_${list}_${field.replaceAll('.', '_')}[0]`;
  return `"MachineConfig " + object.metadata.name + ": spec.config.${section}.${list}[" + string(variables.${list}.indexOf(${first})) + "].${field}: " + ${first}.${label} + ": " + ${what.replaceAll('WRONG', first)}`;
};

/** The number that these decimal digits are in octal. */
const OCTAL_READING =
  '(WRONG.mode / 1000 * 512 + WRONG.mode / 100 % 10 * 64 + WRONG.mode / 10 % 10 * 8 + WRONG.mode % 10)';
const LOOKS_OCTAL = `string(WRONG.mode).matches("^[0-7]{3,4}$") && ${OCTAL_READING} <= 511`;

export function machineConfigRules({ sshUser }: ApiFlavour): { variables: Variable[]; validations: Validation[] } {
  const invalid = (variable: string, messageExpression: string): Validation => ({
    expression: `variables.${variable}.size() == 0`,
    messageExpression,
    reason: 'Invalid',
  });
  return {
    variables: [
      { name: 'files', expression: listAt('storage', 'files') },
      { name: 'users', expression: listAt('passwd', 'users') },
      {
        name: 'wrong_files_mode',
        expression: 'variables.files.filter(f, has(f.mode) && f.mode != null && f.mode > 511)',
      },
      {
        name: 'wrong_files_contents_source',
        expression:
          'variables.files.filter(f, has(f.contents) && f.contents != null && has(f.contents.source) && f.contents.source != null && f.contents.source.matches("^[A-Za-z][A-Za-z0-9+.-]*:") && !f.contents.source.matches("^[Dd][Aa][Tt][Aa]:"))',
      },
      {
        name: 'wrong_users_name',
        expression: `variables.users.filter(u, has(u.name) && u.name != ${JSON.stringify(sshUser)})`,
      },
    ],
    validations: [
      invalid(
        'wrong_files_mode',
        message(
          { section: 'storage', list: 'files', field: 'mode', label: 'path' },
          `string(WRONG.mode) + " is 0" + "%o".format([WRONG.mode]) + ", must be at most 0777; " + (${LOOKS_OCTAL} ? "it looks like octal 0" + string(WRONG.mode) + " read as a decimal number, write " + string(${OCTAL_READING}) : "write the permissions as a decimal number, for example 420 for 0644")`,
        ),
      ),
      invalid(
        'wrong_files_contents_source',
        message(
          { section: 'storage', list: 'files', field: 'contents.source', label: 'path' },
          '"links to remote content (" + WRONG.contents.source.split(":")[0] + ":), which a node cannot fetch after first boot; write the content itself as data:;base64,…"',
        ),
      ),
      invalid(
        'wrong_users_name',
        message(
          { section: 'passwd', list: 'users', field: 'name', label: 'name' },
          JSON.stringify(
            `is not ${sshUser}, the only user that nodes set keys and password of; write name: ${sshUser}`,
          ),
        ),
      ),
    ],
  };
}
