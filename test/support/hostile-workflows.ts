import { ActivityFailure, ApplicationFailure, scheduleActivity } from '@temporalio/workflow';

/** What a hostile client wants done, by whoever polls that queue. */
export interface HostileCall {
  readonly taskQueue: string;
  readonly activity: string;
  readonly args: readonly unknown[];
  readonly seconds: number;
}

export type HostileAnswer =
  | { readonly kind: 'done'; readonly result: unknown }
  /** `code`: what the activity said; a timeout where nobody took it. */
  | { readonly kind: 'refused'; readonly code: string; readonly message: string };

/** Has one activity done on any queue, with any arguments, past every workflow of the product. */
export async function callActivity({ taskQueue, activity, args, seconds }: HostileCall): Promise<HostileAnswer> {
  try {
    const result = await scheduleActivity(activity, [...args], {
      taskQueue,
      scheduleToCloseTimeout: `${seconds}s`,
      heartbeatTimeout: `${seconds}s`,
      retry: { maximumAttempts: 1 },
    });
    return { kind: 'done', result };
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    const { cause } = error;
    const code = cause instanceof ApplicationFailure ? (cause.type ?? 'Error') : (cause?.name ?? 'Unknown');
    return { kind: 'refused', code, message: cause?.message ?? '' };
  }
}
