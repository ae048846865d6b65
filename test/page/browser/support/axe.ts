/** What keeps people out: axe-core's findings in the page as it is now. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Tab } from './tab.ts';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const run = (rules: readonly string[] | undefined): string => `axe.run(document, ${JSON.stringify({
  resultTypes: ['violations'],
  ...(rules && { runOnly: rules }),
})}).then(({ violations }) =>
  violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => id + ' (' + help + '): ' + target.join(' ') + '; ' + failureSummary)))`;

/** Each as one line: the rule, the element, and why. Empty: none. `rules`: of these alone. */
export async function violations(tab: Tab, rules?: readonly string[]): Promise<readonly string[]> {
  if (!(await tab.evaluate<boolean>("'axe' in window"))) await tab.evaluate(`${SOURCE};0`);
  return (await tab.evaluate<readonly string[]>(run(rules))).map((line) => line.replace(/\s+/g, ' '));
}
