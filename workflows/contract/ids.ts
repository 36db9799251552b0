/** Workflow ids and task-queue names: the only place where they are spelt. */

/** Workflows and the activities that need the cluster. */
export const CONTROL_TASK_QUEUE = 'drydock-control';

/** One entity workflow a pool. */
export const managePoolId = (pool: string): string => `pool/${pool}`;
export const renderPoolId = (pool: string): string => `render/${pool}`;
export const rollOutPoolId = (pool: string): string => `rollout/${pool}`;
/** One entity workflow a kind of objects that MachineConfigs are generated from. */
export const manageSourcesId = (kind: string): string => `source/${kind}`;
/** The one entity workflow of a cluster that renews the token with which machines join. */
export const KEEP_BOOTSTRAP_TOKEN_ID = 'bootstrap-token';
/** Without the config in it: at most one update of a node at a time, whoever asks. */
export const updateNodeId = (node: string): string => `node/${node}`;
/** The queue that only this node's worker polls. */
export const nodeTaskQueue = (node: string): string => `node/${node}`;
