export { keepBootstrapToken } from './keep-bootstrap-token.js';
export { managePool } from './manage-pool.js';
export { manageSources } from './manage-sources.js';
export { renderPool } from './render-pool.js';
export { rollOutPool } from './roll-out-pool.js';
export { updateNode } from './update-node.js';
