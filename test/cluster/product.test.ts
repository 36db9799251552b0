import { afterAll, beforeAll, describe } from 'vitest';
import { RealCluster, type RealControl } from '../support/real-cluster.js';
import { describeAssignment } from './assignment.js';
import { describeDefinitions } from './definitions.js';
import { describeInstallation } from './installation.js';
import { describeNodeIdentity } from './node-identity.js';
import { describeNodeSteps } from './node-steps.js';
import { describePoolStatus } from './pool-status.js';
import { describeRender } from './render.js';
import { describeWatches } from './watches.js';

let cluster: RealCluster;

beforeAll(async () => {
  cluster = await RealCluster.start();
});
afterAll(async () => {
  await cluster.stop();
});

// One cluster for all, in this order: the first wants it empty, the last kills its API server.
describeInstallation(() => cluster);
describeDefinitions(() => cluster);

describe('with a control worker', () => {
  let control: RealControl;
  beforeAll(async () => {
    control = await cluster.openControl();
  });
  describePoolStatus(
    () => cluster,
    () => control,
  );
  describeNodeIdentity(
    () => cluster,
    () => control,
  );
  describeRender(
    () => cluster,
    () => control,
  );
  describeAssignment(
    () => cluster,
    () => control,
  );
  describeNodeSteps(
    () => cluster,
    () => control,
  );
});

describeWatches(() => cluster);
