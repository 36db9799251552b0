import { KINDS, type KubernetesClient, type KubernetesObject } from '../../activities/kubernetes/client.js';
import { CommandError } from '../command-error.js';

type SelfSubjectReview = KubernetesObject & { status?: { userInfo?: { username?: string } } };

/** The name of the user that the API server takes us for, as its audit log and its admission policies have it. */
export async function whoAmI(kubernetes: KubernetesClient): Promise<string> {
  // The API server answers with a review that has no name and stores nothing.
  const review = await kubernetes.create<SelfSubjectReview>(KINDS.selfSubjectReview, { metadata: { name: 'drydock' } });
  const user = review.status?.userInfo?.username;
  if (user) return user;
  throw new CommandError('refused', 'the API server does not say who you are: log in with a user of your own');
}
