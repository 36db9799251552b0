import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { findFreePorts } from './processes/free-ports.js';
import type { LabProcess, Supervisor } from './processes/supervisor.js';
import { waitUntil } from './processes/wait-until.js';

const READY_TIMEOUT_MS = 60_000;

export interface LabPrometheus {
  /** `http://127.0.0.1:41234` */
  readonly url: string;
  readonly process: LabProcess;
  /** Resolves when it answers, and has seen what it watches; also after a restart. */
  waitUntilReady(): Promise<void>;
}

/** Starts a Prometheus on a free port of this machine, which watches itself as the job `prometheus`. */
export async function startPrometheus(supervisor: Supervisor, program: string): Promise<LabPrometheus> {
  const [port = 0] = await findFreePorts(1);
  const address = `127.0.0.1:${port}`;
  const config = join(supervisor.directory, 'prometheus.yaml');
  const jobs = [{ job_name: 'prometheus', static_configs: [{ targets: [address] }] }];
  await writeFile(config, stringify({ global: { scrape_interval: '1s' }, scrape_configs: jobs }));
  const process = await supervisor.run({
    id: 'prometheus',
    command: program,
    args: [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(supervisor.directory, 'prometheus')}`,
      `--web.listen-address=${address}`,
    ],
  });
  const url = `http://${address}`;
  const waitUntilReady = async () => {
    await waitUntil(() => hasSeenItself(url), {
      what: 'Prometheus to be ready',
      timeoutMs: READY_TIMEOUT_MS,
      check: () => process.assertRunning(),
    });
  };
  await waitUntilReady();
  return { url, process, waitUntilReady };
}

async function hasSeenItself(url: string): Promise<boolean> {
  try {
    const answer = await fetch(`${url}/api/v1/query?query=${encodeURIComponent('up == 1')}`);
    const body = (await answer.json()) as { data?: { result?: unknown[] } };
    return (body.data?.result ?? []).length > 0;
  } catch {
    return false;
  }
}
