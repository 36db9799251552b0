export { managePool } from './manage-pool.js';
export { renderPool } from './render-pool.js';
export { rollOutPool } from './roll-out-pool.js';
export { updateNode } from './update-node.js';
