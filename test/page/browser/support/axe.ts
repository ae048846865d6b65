/** What keeps people out: axe-core's findings in the page as it is now. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Tab } from './tab.ts';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const RUN = `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>
  violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => id + ' (' + help + '): ' + target.join(' ') + '; ' + failureSummary)))`;

/** Each as one line: the rule, the element, and why. Empty: none. */
export async function violations(tab: Tab): Promise<readonly string[]> {
  if (!(await tab.evaluate<boolean>("'axe' in window"))) await tab.evaluate(`${SOURCE};0`);
  return (await tab.evaluate<readonly string[]>(RUN)).map((line) => line.replace(/\s+/g, ' '));
}
