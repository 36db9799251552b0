import { afterAll, inject, vi } from 'vitest';
import { invalidConfigs, renderedConfigs } from './ignition-validate.js';

/**
 * In every test file: whatever a pool was rendered to must be accepted by the reference validator of Ignition configs,
 * whoever rendered it and whatever the test was about.
 */
vi.mock(import('../../machine-config/render/render-pool.js'), async (importOriginal) => {
  const original = await importOriginal();
  return {
    ...original,
    renderPool: (input) => {
      const result = original.renderPool(input);
      if (result.outcome === 'rendered') renderedConfigs.add(result.config);
      return result;
    },
  };
});

afterAll(async () => {
  const program = inject('ignitionValidate');
  const rendered = renderedConfigs.take();
  if (program === '' || rendered.length === 0) return;
  const invalid = await invalidConfigs(program, rendered);
  if (invalid.length === 0) return;
  throw new Error(
    `ignition-validate refuses ${invalid.length} of ${rendered.length} rendered configs: ${invalid.slice(0, 5).join(' | ')}`,
  );
}, 120_000);
