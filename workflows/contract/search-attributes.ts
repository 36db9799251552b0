import { defineSearchAttributeKey } from '@temporalio/common';

/** Keyword search attributes. A namespace must have them: temporal-dev.yaml in the lab, docs/operating.md elsewhere. */
export const SEARCH_ATTRIBUTES = {
  pool: defineSearchAttributeKey('DrydockPool', 'KEYWORD'),
  node: defineSearchAttributeKey('DrydockNode', 'KEYWORD'),
  rendered: defineSearchAttributeKey('DrydockRendered', 'KEYWORD'),
  /** Upserted at drain and reboot only: each upsert is an event and a visibility write. */
  phase: defineSearchAttributeKey('DrydockPhase', 'KEYWORD'),
} as const;
