/** The exit codes of every command: the one table, also printed by `--help`. */
export const EXIT_CODES = {
  ok: { code: 0, meaning: 'done; of rollout watch: the pool is Updated' },
  refused: { code: 1, meaning: 'refused or failed: the one line on stderr says what, where and why' },
  usage: { code: 2, meaning: 'wrong arguments' },
  degraded: { code: 3, meaning: 'rollout watch ended with the pool Degraded' },
  unreachable: { code: 4, meaning: 'Kubernetes or Temporal was not reached, or did not answer' },
  timedOut: { code: 5, meaning: 'rollout watch ended by --timeout' },
  interrupted: { code: 130, meaning: 'interrupted with Ctrl-C; a rollout goes on' },
} as const satisfies Record<string, { code: number; meaning: string }>;
export type ExitName = keyof typeof EXIT_CODES;

export function exitCodesHelp(): string {
  const lines = Object.values(EXIT_CODES).map(({ code, meaning }) => `  ${String(code).padEnd(4)} ${meaning}`);
  return `\nExit codes:\n${lines.join('\n')}`;
}
