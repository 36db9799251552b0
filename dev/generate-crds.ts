import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { renderManifestFiles } from '../client/install/manifest-files.js';
import { renderCrdFiles } from '../machine-config/api/crd-files.js';

/** Writes `deploy/crds/`, `deploy/rbac/` and `deploy/admission/`; what is there and no longer produced is removed. Run with `npx tsx dev/generate-crds.ts`. */
const root = path.join(import.meta.dirname, '..', 'deploy', 'crds');
await rm(root, { recursive: true, force: true });
for (const [name, text] of renderCrdFiles()) {
  const file = path.join(root, name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  console.log(`wrote deploy/crds/${name}`);
}
for (const [name, text] of renderManifestFiles()) {
  const file = path.join(root, '..', name);
  await mkdir(path.dirname(file), { recursive: true });
  await writeFile(file, text);
  console.log(`wrote deploy/${name}`);
}
