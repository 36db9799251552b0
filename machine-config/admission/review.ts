import { z } from 'zod';
import { oneLine } from '../ignition/findings.js';
import { judgeObject } from './judge-object.js';
import type { AdmissionContext } from './question.js';

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';

/** What of an AdmissionReview is looked at. */
const reviewSchema = z.object({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal(KIND),
  request: z.object({
    uid: z.string().min(1),
    kind: z.object({ kind: z.string() }),
    operation: z.string(),
    object: z.unknown(),
    oldObject: z.unknown(),
  }),
});

/** Longer warnings are cut by the API server in the middle of a word. */
const MAX_WARNING_LENGTH = 250;

export interface AnsweredReview {
  readonly apiVersion: typeof API_VERSION;
  readonly kind: typeof KIND;
  readonly response: {
    readonly uid: string;
    readonly allowed: boolean;
    /** As for a field that the API server itself refuses. */
    readonly status?: { readonly code: 422; readonly reason: 'Invalid'; readonly message: string };
    readonly warnings?: readonly string[];
  };
}

export type ReviewOutcome =
  { readonly ok: true; readonly review: AnsweredReview } | { readonly ok: false; readonly error: string };

/** Answers an AdmissionReview of the API server; what is none gets one line that says so. Never throws. */
export function answerReview(body: unknown, context: AdmissionContext): ReviewOutcome {
  const parsed = reviewSchema.safeParse(body);
  if (!parsed.success) {
    const error = `the body is no ${KIND} of ${API_VERSION} with a request: ${oneLine(z.prettifyError(parsed.error))}`;
    return { ok: false, error };
  }
  const { uid, kind, operation, object, oldObject } = parsed.data.request;
  const isJudged = ['CREATE', 'UPDATE'].includes(operation);
  const isUpdate = operation === 'UPDATE' && oldObject !== undefined && oldObject !== null;
  const question = { kind: kind.kind, object, ...(isUpdate ? { oldObject } : {}) };
  const { refusal, warnings } = isJudged ? judgeObject(question, context) : { warnings: [] };
  return {
    ok: true,
    review: {
      apiVersion: API_VERSION,
      kind: KIND,
      response: {
        uid,
        allowed: refusal === undefined,
        ...(refusal === undefined ? {} : { status: { code: 422, reason: 'Invalid', message: refusal } }),
        ...(warnings.length === 0 ? {} : { warnings: warnings.map(shorten) }),
      },
    },
  };
}

function shorten(warning: string): string {
  return warning.length <= MAX_WARNING_LENGTH ? warning : `${warning.slice(0, MAX_WARNING_LENGTH - 1)}…`;
}
