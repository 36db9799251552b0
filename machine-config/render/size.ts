/** Bytes that etcd takes for one object by default, as JSON; Kubernetes refuses what is larger. */
export const MAX_RENDERED_BYTES = 1_572_864;
/** From here on it is said: there is little room left for the metadata and for what is added next. */
export const LARGE_RENDERED_BYTES = 1_048_576;
const NAMED_INPUTS = 5;

export interface SizedInput {
  readonly name: string;
  readonly bytes: number;
}

export function bytesOf(value: unknown): number {
  return value === undefined ? 0 : Buffer.byteLength(JSON.stringify(value));
}

/** Whether a rendered config of so many bytes can be stored; a sentence names the largest inputs where it is large. */
export function judgeSize(
  bytes: number,
  inputs: readonly SizedInput[],
): { readonly verdict: 'fits' } | { readonly verdict: 'large' | 'tooLarge'; readonly message: string } {
  if (bytes <= LARGE_RENDERED_BYTES) return { verdict: 'fits' };
  const largest = [...inputs]
    .sort((left, right) => right.bytes - left.bytes)
    .slice(0, NAMED_INPUTS)
    .map(({ name, bytes: size }) => `${name} (${size} bytes)`)
    .join(', ');
  const tooLarge = bytes > MAX_RENDERED_BYTES;
  const message = tooLarge
    ? `the rendered config has ${bytes} bytes, Kubernetes stores at most ${MAX_RENDERED_BYTES}`
    : `the rendered config has ${bytes} bytes, close to the ${MAX_RENDERED_BYTES} that Kubernetes stores`;
  return {
    verdict: tooLarge ? 'tooLarge' : 'large',
    message: `${message}; pack files with gzip or make the largest inputs smaller: ${largest}`,
  };
}
