import { describe, expect, it } from 'vitest';
import { annotationsOfGrant } from '../../../machine-config/pool/grant.js';
import { makeNode, NEW, OLD } from '../pool/make-node.js';

const grant = { outcome: 'granted', target: NEW, current: OLD } as const;
const only = { onlySchedulable: 'n1' };

describe('a grant to the only node that takes pods', () => {
  it('says with the config that it is not drained for it, also when it is retargeted', () => {
    const said = { desired: NEW, forceGranted: null, noDrain: NEW };
    expect(annotationsOfGrant(makeNode('n1'), grant, only)).toEqual(said);
    expect(
      annotationsOfGrant(makeNode('n1', { desired: 'rendered-between', noDrain: 'rendered-between' }), grant, only),
    ).toEqual(said);
    expect(annotationsOfGrant(makeNode('n1', { desired: NEW, noDrain: NEW }), grant, only)).toBeUndefined();
  });

  it('is taken back when another node takes pods by then, and when the slot is given back', () => {
    const granted = makeNode('n1', { desired: NEW, noDrain: NEW });
    const drained = { desired: NEW, forceGranted: null, noDrain: null };
    expect(annotationsOfGrant(granted, grant, { onlySchedulable: undefined })).toEqual(drained);
    expect(annotationsOfGrant(granted, grant, { onlySchedulable: 'n2' })).toEqual(drained);
    const back = { outcome: 'unneeded', target: OLD, cordonedByUs: true } as const;
    expect(annotationsOfGrant(granted, back)).toEqual({ desired: OLD, forceGranted: null, noDrain: null });
  });

  it('is decided once it is applied, and no matter where nobody looked', () => {
    const applying = makeNode('n1', { desired: NEW, noDrain: NEW, applying: NEW });
    expect(annotationsOfGrant(applying, grant, { onlySchedulable: undefined })).toBeUndefined();
    expect(annotationsOfGrant(makeNode('n1', { desired: NEW, noDrain: NEW }), grant)).toBeUndefined();
  });
});
