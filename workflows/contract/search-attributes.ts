import { defineSearchAttributeKey } from '@temporalio/common';

/** Keyword search attributes; registered by temporal-dev.yaml in development and by `drydock install` elsewhere. */
export const SEARCH_ATTRIBUTES = {
  pool: defineSearchAttributeKey('DrydockPool', 'KEYWORD'),
  node: defineSearchAttributeKey('DrydockNode', 'KEYWORD'),
  rendered: defineSearchAttributeKey('DrydockRendered', 'KEYWORD'),
  /** Upserted at drain and reboot only: each upsert is an event and a visibility write. */
  phase: defineSearchAttributeKey('DrydockPhase', 'KEYWORD'),
} as const;
