import { Readable } from 'node:stream';

/** So much is handed to a connection at once: what waits for slow clients stays small. */
const PIECE_BYTES = 64 * 1024;

/** One document, ready to be sent. Documents of several versions share their tail. */
export interface ServedBody {
  readonly head: Buffer;
  readonly tail: Buffer;
}

/** Keeps tails, so that equal ones are one. */
export class BodyMaker {
  readonly #tails = new Map<string, Buffer>();

  /** What differs from version to version comes first. */
  make({ ignition, kernelArguments, ...rest }: Readonly<Record<string, unknown>>): ServedBody {
    const head = JSON.stringify({ ignition, ...(kernelArguments === undefined ? {} : { kernelArguments }) });
    const body = JSON.stringify(rest);
    const tail = body === '{}' ? '}' : `,${body.slice(1)}`;
    const known = this.#tails.get(tail) ?? Buffer.from(tail);
    this.#tails.set(tail, known);
    return { head: Buffer.from(head.slice(0, -1)), tail: known };
  }
}

export function lengthOf({ head, tail }: ServedBody): number {
  return head.length + tail.length;
}

export function streamOf({ head, tail }: ServedBody): Readable {
  return Readable.from(pieces(head, tail), { objectMode: false, highWaterMark: PIECE_BYTES });
}

function* pieces(...buffers: readonly Buffer[]): Generator<Buffer> {
  for (const buffer of buffers) {
    for (let start = 0; start < buffer.length; start += PIECE_BYTES) yield buffer.subarray(start, start + PIECE_BYTES);
  }
}
