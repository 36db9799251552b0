import { expect, test } from 'vitest';
import { evictionResult } from '../../../activities/kubernetes/eviction.js';

const pod = { namespace: 'shop', name: 'cart-1', uid: 'u-1' };
const cause = (message: string, reason = 'DisruptionBudget') => ({ details: { causes: [{ reason, message }] } });

test.each([
  [201, {}, { outcome: 'evicted' }],
  [404, { reason: 'NotFound' }, { outcome: 'gone' }],
  [409, { message: 'the UID in the precondition (u-1) does not match the UID in record (u-2)' }, { outcome: 'gone' }],
  [
    429,
    cause('The disruption budget cart needs 1 healthy pods and has 1 currently'),
    { outcome: 'refused', why: 'PDB shop/cart allows 0 disruptions', budget: 'shop/cart' },
  ],
  [
    429,
    cause('The disruption budget cart is still being processed by the server.'),
    { outcome: 'refused', why: 'PDB shop/cart is not processed yet', budget: 'shop/cart' },
  ],
  [
    500,
    { message: 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.' },
    {
      outcome: 'refused',
      why: 'more than one PodDisruptionBudget selects pod shop/cart-1, which eviction does not support',
    },
  ],
  [
    403,
    cause('namespace shop is being terminated', 'NamespaceTerminating'),
    { outcome: 'refused', why: 'namespace shop is being deleted' },
  ],
])('answer %i of %j', (status, body, expected) => {
  expect(evictionResult(pod, { status, body })).toEqual(expected);
});

test('the time after which to ask again is passed on', () => {
  const body = cause('The disruption budget cart is still being processed by the server.');
  expect(evictionResult(pod, { status: 429, body, retryAfterSeconds: 10 })).toMatchObject({ retryAfterSeconds: 10 });
});

test.each([
  [429, 'too many requests, please try again later', 'ApiUnavailable'],
  [500, 'etcdserver: request timed out', 'ApiUnavailable'],
  [403, 'may only evict pods bound to this node', 'Forbidden'],
  [409, 'Operation cannot be fulfilled: the object has been modified', 'Conflict'],
])('%i %s is no refusal by a budget but a failure', (status, message, type) => {
  expect(() => evictionResult(pod, { status, body: { message } })).toThrow(expect.objectContaining({ type }));
});
