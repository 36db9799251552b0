import { main } from './main.js';

/** The command `drydock` as a package brings it. */
process.exitCode = await main(process.argv.slice(2));
