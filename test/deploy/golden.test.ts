/**
 * What Helm makes of the chart for each set of values: the lines that differ from the defaults, which deploy/manifests/junction.yaml
 * has in full. After a change of the chart: npx vitest run test/deploy -u, and read what changed.
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

/** Of the lines above a difference, the last of these stands beside it. */
const PLACE = String.raw`^kind:\|^ *\(initContainers\|containers\|volumeMounts\|volumes\|env\):`;

function difference(values: Data): string {
  const folder = mkdtempSync(join(tmpdir(), 'junction-golden-'));
  try {
    writeFileSync(join(folder, 'defaults'), rendered(REQUIRED));
    writeFileSync(join(folder, 'these'), rendered(values));
    const options = ['-U0', `--show-function-line=${PLACE}`, 'defaults', 'these'];
    const { stdout } = spawnSync('diff', options, { cwd: folder, encoding: 'utf8' });
    // Without names and times of files, and without line numbers, which any change moves.
    return stdout.replace(/^---.*\n\+\+\+.*\n/, '').replaceAll(/^@@.*?@@/gm, '@@');
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test.each(Object.entries(VALUE_SETS))('the chart with %s', async (name, values) => {
  const file = name.replaceAll(/[^\w]+/g, '-');
  await expect(difference(values)).toMatchFileSnapshot(`golden/${file}.diff`);
});
