/** What one look found. */
export interface DoctorFinding {
  readonly check: string;
  /** `unknown`: it could not be looked at, which the sentence explains. */
  readonly verdict: 'ok' | 'warning' | 'problem' | 'unknown';
  /** What is so, and unless that is well, what to do. */
  readonly sentence: string;
}

export const ok = (check: string, sentence: string): DoctorFinding => ({ check, verdict: 'ok', sentence });
export const warning = (check: string, sentence: string): DoctorFinding => ({ check, verdict: 'warning', sentence });
export const problem = (check: string, sentence: string): DoctorFinding => ({ check, verdict: 'problem', sentence });
export const unknown = (check: string, sentence: string): DoctorFinding => ({ check, verdict: 'unknown', sentence });
