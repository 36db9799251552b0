import { startLab } from '../../dev/lab.js';
import { startMachines } from '../../dev/real-nodes/real-node.js';
import { tracesOf } from './machine-traces.js';

/** A process that holds a machine until it is ended; started by lab-nodes.test.ts. Sends where it can be seen. */
const lab = await startLab({ temporal: false, kubernetes: false });
const [machine] = await startMachines(lab, [{ name: 'held', diskMebibytes: 300 }]);
if (machine === undefined) throw new Error('no machine');
process.send?.(await tracesOf(lab, machine));
process.on('message', () => {
  // Out of the promise: an exception that nobody handles.
  setImmediate(() => {
    throw new Error('crash on purpose');
  });
});
