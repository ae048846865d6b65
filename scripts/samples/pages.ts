/**
 * Pages of docs/ whose samples come from the program. Above a sample stands `<!-- sample: NAME -->`; what follows, a fenced
 * block or a table, is written by `node scripts/docs.mjs`, and a test compares.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { schemaPage, withTypes } from './apiPage.ts';
import { referencePage } from './configurationPage.ts';
import { dashboardFile } from '../monitoring/dashboard.ts';
import { chartRules, ruleFile } from '../monitoring/rules.ts';
import { SAMPLES } from './samples.ts';

const PAGES_WITH_SAMPLES = [
  'README.md',
  'docs/check.md',
  'docs/compatibility.md',
  'docs/deployment.md',
  'docs/errors.md',
  'docs/explain.md',
  'docs/holding-ports.md',
  'docs/iptables.md',
  'docs/manifests.md',
  'docs/metrics.md',
  'docs/troubleshooting.md',
];

export interface Page {
  readonly path: string;
  readonly text: string;
}

/** As they should be. */
export async function writtenPages(root: string): Promise<readonly Page[]> {
  const api = 'docs/reference/api.md';
  const pages: Page[] = [
    { path: 'docs/reference/configuration.md', text: referencePage() },
    { path: 'docs/reference/api.schema.json', text: schemaPage(root) },
    ...(await monitoringFiles()),
    { path: api, text: withTypes(readFileSync(join(root, api), 'utf8'), root) },
  ];
  for (const path of PAGES_WITH_SAMPLES) {
    pages.push({ path, text: await fillIn(readFileSync(join(root, path), 'utf8'), root) });
  }
  return pages;
}

/** Beside the chart, and in it: Helm reads no file outside of a chart. */
async function monitoringFiles(): Promise<readonly Page[]> {
  const dashboard = await dashboardFile();
  return [
    { path: 'deploy/monitoring/junction-rules.yaml', text: await ruleFile() },
    { path: 'deploy/monitoring/junction-dashboard.json', text: dashboard },
    { path: 'deploy/chart/junction/files/junction-rules.yaml', text: await chartRules() },
    { path: 'deploy/chart/junction/files/junction-dashboard.json', text: dashboard },
  ];
}

const SAMPLE = /(<!-- sample: ([\w-]+) -->\n)(?:```\n[^]*?\n```\n|(?:\|[^\n]*\n)+)/g;

export async function fillIn(page: string, root: string): Promise<string> {
  let filled = '';
  let end = 0;
  for (const match of page.matchAll(SAMPLE)) {
    const [whole, marker = '', name = ''] = match;
    const sample = SAMPLES[name];
    if (sample === undefined) throw new Error(`there is no sample ${name}`);
    const text = await sample(root);
    const block = text.startsWith('|') ? text : `\`\`\`\n${text}\`\`\`\n`;
    filled += page.slice(end, match.index) + marker + block;
    end = match.index + whole.length;
  }
  return filled + page.slice(end);
}
