/** Prometheus and promtool: unpacked by set-up, or the machine's own. */
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'vitest';
import { attempt } from '../../../src/errors.ts';
import { TOOL_PATH } from '../../../lab/tools.ts';
import { ROOT } from '../chart.ts';

/** Of scripts/support/unpacked.mjs. */
const UNPACKED = join(ROOT, 'node_modules/.cache/debian/prometheus/usr/bin');

type Tool = 'prometheus' | 'promtool';

export function findTool(name: Tool): string | undefined {
  const folders = [UNPACKED, ...TOOL_PATH.split(':')];
  return folders
    .map((folder) => join(folder, name))
    .find((path) => attempt(() => accessSync(path, constants.X_OK) === undefined));
}

/** Its path. Where it is missing, the test is skipped with the reason; on CI that is a failure. */
export function requireTool(name: Tool, context: Pick<TestContext, 'skip'>): string {
  const path = findTool(name);
  if (path !== undefined) return path;
  const reason = `${name} is missing: npm run test:ship as root on Debian unpacks it; or install the package prometheus`;
  if (process.env['CI'] === 'true') throw new Error(reason);
  context.skip(reason);
  throw new Error(reason);
}
