import { describe, expect, it } from 'vitest';
import { apiFlavour } from '../../../machine-config/api/flavour.js';
import type { MachineConfig } from '../../../machine-config/api/machine-config.js';
import { renderedName, UnreadableSpecError, verifyRenderedName } from '../../../machine-config/render/name.js';
import { renderPool } from '../../../machine-config/render/render-pool.js';

function renderedConfig(): MachineConfig {
  const spec = {
    config: {
      ignition: { version: '3.4.0' },
      storage: { files: [{ path: '/etc/a', mode: 0o600, contents: { source: 'data:,a' } }] },
    },
    kernelArguments: ['a', 'b'],
  };
  const result = renderPool({
    pool: 'my-pool',
    flavour: apiFlavour('openshift'),
    machineConfigs: [{ metadata: { name: 'a' }, spec }],
  });
  if (result.outcome === 'refused') throw new Error(result.reason);
  return result.config;
}

/** The rendered config after somebody edited it as text. */
const edited = (from: string, to: string): MachineConfig => {
  const text = JSON.stringify(renderedConfig());
  expect(text).toContain(from);
  return JSON.parse(text.replace(from, to)) as MachineConfig;
};

describe('a rendered config', () => {
  it('has the name of its content, with its owner and annotations or without', () => {
    const config = renderedConfig();
    expect(verifyRenderedName(config)).toBe(true);
    expect(verifyRenderedName({ ...config, metadata: { ...config.metadata, uid: 'x', annotations: { a: 'b' } } })).toBe(
      true,
    );
    expect(renderedName('my-pool', config.spec ?? {})).toBe(config.metadata.name);
  });

  it('keeps its name when only its encoding changes', () => {
    expect(verifyRenderedName(edited('data:,a', 'data:;base64,YQ=='))).toBe(true);
  });

  it.each([
    ['contents', 'data:,a', 'data:,b'],
    ['mode', '384', '420'],
    ['path', '/etc/a', '/etc/b'],
    ['kernel arguments', '["a","b"]', '["b","a"]'],
    ['FIPS', '"fips":false', '"fips":true'],
    ['an owner', '"mode":384', '"mode":384,"user":{"id":1}'],
    ['an unknown key of the spec', '"fips":false', '"fips":false,"more":1'],
    ['an unknown key of a file', '"mode":384', '"mode":384,"more":1'],
    ['remote contents', 'data:,a', 'https://example.com/a'],
    ['the hash in its name', 'rendered-my-pool-', 'rendered-my-pool-0'],
    ['the pool in its name, against the form', 'rendered-my-pool-', 'my-pool-'],
  ])('loses its name when somebody changes %s', (_, from, to) => {
    expect(verifyRenderedName(edited(from, to))).toBe(false);
  });

  it('without spec or with rubbish has no name', () => {
    const { metadata } = renderedConfig();
    expect(verifyRenderedName({ metadata })).toBe(false);
    expect(() => renderedName('p', { kernelType: 'turbo' })).toThrow(UnreadableSpecError);
  });
});
