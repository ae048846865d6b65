/**
 * What Helm makes of the chart: the whole of it with the defaults, and for every other set of values the lines that differ.
 * After a change of the chart: npx vitest run test/deploy -u, and read the difference.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Data, REQUIRED, renderTexts } from './chart.ts';
import { VALUE_SETS } from './valueSets.ts';

/** Without the checksum, which follows from the rest, and without what deploy/manifests/ and deploy/migration/ have in full. */
function rendered(values: Data): string {
  return [...renderTexts(values)]
    .filter(([name, text]) => text.trim() !== '' && name !== 'cleanup.yaml')
    .map(([name, text]) => {
      const [head = ''] = /^(?:dashboard|prometheusrule)/.test(name)
        ? text.split(/^(?:data|spec):$/m)
        : [text];
      return `# ${name}\n${head.trim()}\n`;
    })
    .join('---\n')
    .replaceAll(/(checksum\/config: )[0-9a-f]{64}/g, '$1…');
}

function difference(values: Data): string {
  const folder = mkdtempSync(join(tmpdir(), 'junction-golden-'));
  try {
    writeFileSync(join(folder, 'defaults'), rendered(REQUIRED));
    writeFileSync(join(folder, 'these'), rendered(values));
    const { stdout } = spawnSync('diff', ['-U1', 'defaults', 'these'], { cwd: folder, encoding: 'utf8' });
    // Without names and times of files, and without line numbers, which any change moves.
    return stdout.replace(/^---.*\n\+\+\+.*\n/, '').replaceAll(/^@@.*$/gm, '@@');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('the chart with its defaults', async () => {
  await expect(rendered(REQUIRED)).toMatchFileSnapshot('golden/defaults.txt');
});

test.each(Object.entries(VALUE_SETS))('the chart with %s', async (name, values) => {
  const file = name.replaceAll(/[^\w]+/g, '-');
  await expect(difference(values)).toMatchFileSnapshot(`golden/${file}.diff`);
});
