import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { offlineRender } from '../../../client/offline-render.js';
import { verifyRenderedName } from '../../../machine-config/render/name.js';

/** Files from the field, beside the repository; other people's, so they are not in it. */
const CORPUS = path.join(import.meta.dirname, '../../../../shared/corpus');
const present = existsSync(CORPUS);

/** Files that are refused, and what is said; every other file is rendered. */
const REFUSED: readonly (readonly [RegExp, RegExp])[] = [
  [/^(04|13|31|35|91|103)-/, /there is no MachineConfig to render, only MachineConfigPool/],
  [/^(05|94)-/, /there is no MachineConfig to render, only ContainerRuntimeConfig/],
  [/^(22|34|100)-/, /there is no MachineConfig to render, only KubeletConfig/],
  [/^(10|101)-/, /there is no MachineConfig to render, only MachineConfiguration cluster/],
  [/^(07|08)-/, /is a Template and not yet a MachineConfig; process it first/],
  [/^(38|40|41|43|47)-/, /the MachineConfig has no metadata\.name/],
  // Butane: what is translated has a test of its own, test/unit/butane/corpus.test.ts.
  [/^(104|107|110|113|115|118|119)-/, /:\d:1: variant: this variant names no MachineConfig; .* --role/],
  [/^(106|109|112)-/, /:\d+:\d+: storage\.files\[\d\]\.contents\.local: .* is not in/],
  [/^116-/, /:7:11: is not valid YAML/],
  [/^46-/, /:8: is not valid YAML: Map keys must be unique/],
  [/^62-/, /spec\.config\.Systemd: .*write systemd/],
  [/^67-/, /spec\.config\.storage\.disks\[0\]\.device: .*not absolute/],
  [/^68-/, /spec\.config\.storage\.files\[0\]\.contents\.source: .*is no URL/],
  [/^86-/, /spec\.config\.storage\.files\[0\]\.contents\.source: .*not valid base64/],
  [/^88-/, /spec\.config\.storage\.files\[0\]\.mode: .*the string "0644".*write 420/],
  [/^122-/, /spec\.config\.passwd\.users\[0\]\.user: .*write name/],
];

/** What is said of files that are rendered all the same. */
const WARNED: readonly (readonly [RegExp, RegExp])[] = [
  [/^01-/, /has no \[Install\] section/],
  [/^23-/, /spec: is missing, so this MachineConfig contributes nothing/],
  [/^(28|44|70|92)-/, /filesystem: .* does nothing \(a key of spec 2/],
  [/^55-/, /is read as 3 arguments/],
  [/^59-/, /spec\.config\.osImageURL: .* does nothing/],
  [/^71-/, /storage\.luks: only has an effect at first boot/],
];

const files = present ? readdirSync(CORPUS).filter((name) => !name.endsWith('.md')) : [];
const expected = (table: typeof REFUSED, name: string) => table.find(([names]) => names.test(name))?.[1];
const render = (name: string) => offlineRender({ files: [path.join(CORPUS, name)] });

describe.skipIf(!present)('files from the field', () => {
  it('are there, and each expectation is about one of them', () => {
    expect(files.length).toBeGreaterThan(70);
    for (const [names] of [...REFUSED, ...WARNED]) expect(files.filter((name) => names.test(name))).not.toEqual([]);
  });

  it.each(files)('%s is rendered, or refused with file and cause', async (name) => {
    const result = await render(name);
    const reason = expected(REFUSED, name);
    if (reason === undefined) {
      expect(result.outcome === 'refused' ? result.reason : '').toBe('');
      expect(result.outcome === 'rendered' && verifyRenderedName(result.config)).toBe(true);
    } else {
      expect(result.outcome === 'refused' ? result.reason : 'rendered').toMatch(reason);
      expect(result.outcome === 'refused' && result.reason).toContain(name);
      expect(result.outcome === 'refused' && result.reason).not.toContain('\n');
    }
    const warning = expected(WARNED, name);
    if (warning !== undefined) expect(result.warnings).toContainEqual(expect.stringMatching(warning));
  });

  it('are rendered as one folder or refused with each cause', async () => {
    const result = await offlineRender({ files: [CORPUS] });
    expect(result.outcome).toBe('refused');
    for (const name of ['104-fcos-bu.yaml', '38-mask-target-no-metadata.yaml', '116-trees.yaml']) {
      expect(result.outcome === 'refused' && result.problems).toContainEqual(expect.stringContaining(name));
    }
  });
});
