import { measureFloor } from './floor.js';
import type { FloorRequest, FloorAnswer } from './floor-apart.js';

const answer = (message: FloorAnswer) => process.send?.(message);

process.once('message', (message) => {
  const { temporal, options } = message as FloorRequest;
  measureFloor(temporal, options, (line) => answer({ line }))
    .then(
      (histories) => answer({ histories }),
      (error: unknown) => answer({ failure: error instanceof Error ? error.message : String(error) }),
    )
    .finally(() => process.disconnect());
});
