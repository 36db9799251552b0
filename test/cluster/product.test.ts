import { afterAll, beforeAll, describe } from 'vitest';
import { RealCluster, type RealControl } from '../support/real-cluster.js';
import { describeAdmission } from './admission.js';
import { describeAdmissionOfConfigs } from './admission-of-configs.js';
import { describeAssignment } from './assignment.js';
import { describeCertificates } from './certificates.js';
import { describeControlPlane } from './control-plane.js';
import { describeDefinitions } from './definitions.js';
import { describeGates } from './gates.js';
import { describeInstallation } from './installation.js';
import { describeNodeIdentity } from './node-identity.js';
import { describeNodeSteps } from './node-steps.js';
import { describePoolReports } from './pool-reports.js';
import { describePoolStatus } from './pool-status.js';
import { describeRender } from './render.js';
import { describeRights, describeRoles } from './rights.js';
import { describeWebhook } from './webhook.js';
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
describeAdmissionOfConfigs(() => cluster);

describe('with a control worker', () => {
  let control: RealControl;
  beforeAll(async () => {
    control = await cluster.openControl();
  });
  describeAdmission(
    () => cluster,
    () => control,
    'openshift',
  );
  describeRoles(() => cluster);
  describePoolStatus(
    () => cluster,
    () => control,
  );
  describePoolReports(
    () => cluster,
    () => control,
  );
  describeNodeIdentity(
    () => cluster,
    () => control,
  );
  describeCertificates(
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
  describeGates(
    () => cluster,
    () => control,
  );
  describeControlPlane(
    () => cluster,
    () => control,
  );
  describeWebhook(
    () => cluster,
    () => control,
  );
  // Late: kubectl cannot tell the short names of two groups apart.
  describeAdmission(
    () => cluster,
    () => control,
    'alauda',
  );
  describeRights(() => cluster);
});

describeWatches(() => cluster);
