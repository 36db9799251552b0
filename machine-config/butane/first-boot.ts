import type { IgnitionConfig, IgnitionFile } from '../ignition/config.js';

/**
 * The config without what only a machine at its first boot can do, and a MachineConfig never may: content from elsewhere,
 * content appended to a file, special bits of modes, other configs merged in. What is left keeps its place, and must be right by the
 * rules for every config.
 */
export function reachableAtFirstBoot({ ignition, storage, ...others }: IgnitionConfig): IgnitionConfig {
  const { version, proxy, timeouts } = ignition;
  const files = storage?.files?.map(withoutFetching);
  return {
    ...others,
    ignition: {
      version,
      ...(proxy === undefined ? {} : { proxy }),
      ...(timeouts === undefined ? {} : { timeouts }),
    },
    ...(storage === undefined ? {} : { storage: { ...storage, ...(files === undefined ? {} : { files }) } }),
  };
}

function withoutFetching(file: IgnitionFile): IgnitionFile {
  const { append = [], contents, mode = 0, ...rest } = file;
  const isRemote = /^(?:https?|tftp|s3|arn|gs):/.test(contents?.source ?? '');
  const isKept = contents !== undefined && !isRemote;
  // A file that is only appended to may say overwrite neither way; one with remote contents has contents.
  return {
    ...rest,
    ...(isKept ? { contents } : isRemote || append.length > 0 ? { contents: { source: 'data:,' } } : {}),
    ...(file.mode === undefined ? {} : { mode: mode > 0o777 && mode <= 0o7777 ? mode & 0o777 : mode }),
  };
}
