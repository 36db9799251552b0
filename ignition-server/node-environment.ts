/** Settings that are the same for every node of a cluster, and that nobody has to write. */
export interface ClusterSettings {
  readonly clusterUid: string;
  readonly flavour: string;
}

/** The node workers' settings: what an administrator wrote, and of the cluster what is missing in it. */
export function nodeEnvironment(written: string, { clusterUid, flavour }: ClusterSettings): string {
  const own = { DRYDOCK_CLUSTER_UID: clusterUid, DRYDOCK_FLAVOUR: flavour };
  const missing = Object.entries(own).filter(([name]) => !new RegExp(`^\\s*${name}=`, 'mu').test(written));
  const lines = missing.map(([name, value]) => `${name}=${value}\n`).join('');
  return `${written.trimEnd()}\n${lines}`.trimStart();
}
