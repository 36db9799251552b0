import { homedir } from 'node:os';
import { join } from 'node:path';

/** What the lab takes from the environment; nothing else in dev/ reads it. */
export interface LabSettings {
  /** Tools that were fetched or built, shared by all labs and clones: `$XDG_CACHE_HOME/drydock`. */
  readonly cacheDirectory: string;
  /** What `drydock lab up` remembers: `$XDG_STATE_HOME/drydock`. */
  readonly stateDirectory: string;
  /** DRYDOCK_TEMPORAL_CLI: a `temporal` program to use instead of looking for one. */
  readonly temporalCli: string | undefined;
  /** DRYDOCK_KUBERNETES_BIN: a folder with etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok. */
  readonly kubernetesBin: string | undefined;
  /** Unless DRYDOCK_INSTALL_TOOLS is `no`: packages that real nodes need may be installed with apt-get. */
  readonly installTools: boolean;
}

export function readLabSettings(environment: NodeJS.ProcessEnv = process.env): LabSettings {
  const directory = (variable: string, fallback: string) => {
    const value = environment[variable];
    // The XDG specification: a relative path is ignored.
    return join(value?.startsWith('/') === true ? value : join(homedir(), fallback), 'drydock');
  };
  return {
    cacheDirectory: directory('XDG_CACHE_HOME', '.cache'),
    stateDirectory: directory('XDG_STATE_HOME', join('.local', 'state')),
    temporalCli: environment['DRYDOCK_TEMPORAL_CLI'] || undefined,
    kubernetesBin: environment['DRYDOCK_KUBERNETES_BIN'] || undefined,
    installTools: environment['DRYDOCK_INSTALL_TOOLS'] !== 'no',
  };
}
