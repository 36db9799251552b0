import type { Systemctl } from './host.js';

/** The process was asked to end while it changed the host, and the change was put back for that alone. */
export class ApplyInterruptedError extends Error {
  override readonly name = 'ApplyInterruptedError';
}

/** The reason in itself, within a change. */
export class Interruption extends Error {
  override readonly name = 'Interruption';

  constructor() {
    super('interrupted, since the node worker was asked to end');
  }
}

/** Throws Interruption once the signal has come. */
export function refuseIfInterrupted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw new Interruption();
}

/**
 * The same systemctl, but a job of a unit, which may take minutes, is waited for no longer than until the signal, with an
 * Interruption. systemd goes on with the job; the next job of that unit takes its place.
 */
export function interruptibleJobs(systemctl: Systemctl, signal: AbortSignal | undefined): Systemctl {
  if (signal === undefined) return systemctl;
  const wait = (job: (unit: string) => Promise<void>) => (unit: string) => unlessInterrupted(job(unit), signal);
  return {
    ...systemctl,
    start: wait((unit) => systemctl.start(unit)),
    stop: wait((unit) => systemctl.stop(unit)),
    restart: wait((unit) => systemctl.restart(unit)),
    reloadUnit: wait((unit) => systemctl.reloadUnit(unit)),
  };
}

function unlessInterrupted(job: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const interrupt = () => reject(new Interruption());
    if (signal.aborted) interrupt();
    signal.addEventListener('abort', interrupt, { once: true });
    void job.then(resolve, reject).finally(() => signal.removeEventListener('abort', interrupt));
  });
}
