import type { ClosableKubernetesClient } from '../../activities/kubernetes/rest.js';
import { run } from '../../client/main.js';
import type { CommandWorld } from '../../client/session.js';
import { FakeCluster } from './fake-cluster.js';
import { FakeEngine } from './fake-engine.js';

/** What a command printed and how it ended. */
export interface CommandRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A terminal with a fake cluster and a fake Temporal behind it. */
export class FakeTerminal {
  readonly cluster: FakeCluster;
  readonly engine = new FakeEngine();
  readonly interrupt = new AbortController();
  /** Makes opening Temporal fail. */
  temporalProblem: Error | undefined;
  now = new Date('2026-11-30T12:00:00Z');
  environment: Record<string, string | undefined> = {};
  isTTY = false;
  /** What has been printed so far, while a command runs. */
  out = '';

  constructor(cluster = new FakeCluster()) {
    this.cluster = cluster;
  }

  async run(...words: string[]): Promise<CommandRun> {
    this.out = '';
    let err = '';
    const code = await run(
      ['--kubeconfig', 'fake', ...words],
      this.world((text) => (err += text)),
    );
    return { code, out: this.out, err };
  }

  private world(writeErr: (text: string) => void): CommandWorld {
    return {
      stdout: { write: (text: string) => (this.out += text), isTTY: this.isTTY },
      stderr: { write: writeErr },
      environment: this.environment,
      homeFolder: '/nowhere',
      now: () => this.now,
      interruption: () => this.interrupt.signal,
      openKubernetes: () => Promise.resolve(closable(this.cluster)),
      openEngine: () =>
        this.temporalProblem === undefined ? Promise.resolve(this.engine) : Promise.reject(this.temporalProblem),
    };
  }
}

function closable(cluster: FakeCluster): ClosableKubernetesClient {
  return Object.assign(Object.create(cluster) as FakeCluster, { close: () => Promise.resolve() });
}
