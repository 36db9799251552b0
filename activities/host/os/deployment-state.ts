import { missingArguments, sameArguments, withoutArguments } from '../../../machine-config/change/command-line.js';
import type { OsState } from '../host.js';
import { ourArguments, type OsRecord } from './record.js';

/** What one bootable deployment of the operating system really has. */
export interface Deployment {
  /** Names it for good, and no other one: its commit and its serial number. */
  readonly id: string;
  readonly kernelArguments: readonly string[];
  /** As a MachineConfig would name it; undefined: it did not come from an image. */
  readonly image: string | undefined;
  readonly kernelType: string;
  readonly extensions: readonly string[];
}

/**
 * What of a deployment is Drydock's. One that nobody recorded was made by somebody else from one that was, or by a change
 * that was begun and whose end nobody saw: then only what really is there counts.
 */
export function oursOf(record: OsRecord, deployment: Deployment): OsState {
  const recorded = record.deployments?.[deployment.id];
  const candidates =
    recorded === undefined ? [...(record.intended === undefined ? [] : [record.intended]), record.settled] : [recorded];
  const image = deployment.image ?? '';
  const isOurImage =
    candidates.some(({ osImageURL }) => osImageURL !== '' && osImageURL === image) ||
    candidates.every(({ osImageURL }) => osImageURL !== '');
  const ourExtensions = new Set(candidates.flatMap(({ extensions }) => extensions));
  return {
    kernelArguments: recorded
      ? withoutArguments(
          recorded.kernelArguments,
          missingArguments(recorded.kernelArguments, deployment.kernelArguments),
        )
      : ourArguments(record, deployment.kernelArguments),
    osImageURL: isOurImage ? image : '',
    kernelType: candidates.some(({ kernelType }) => kernelType !== 'default') ? deployment.kernelType : 'default',
    extensions: deployment.extensions.filter((extension) => ourExtensions.has(extension)),
  };
}

/** The order of extensions has no meaning, that of kernel arguments has one. */
export function sameOs(one: OsState, other: OsState): boolean {
  return (
    sameArguments(one.kernelArguments, other.kernelArguments) &&
    one.osImageURL === other.osImageURL &&
    one.kernelType === other.kernelType &&
    one.extensions.length === other.extensions.length &&
    one.extensions.every((extension) => other.extensions.includes(extension))
  );
}
