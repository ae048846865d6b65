/** Each version of iptables has a dialect in which rules are encoded as it writes them; what any of them wrote is decoded. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { FAMILIES } from '../../../../src/model/ip.ts';
import type { DIALECTS } from '../../../../src/modes/iptables/netlink/dialect.ts';
import { TIMEOUT } from '../../../scenarios/randomRun.ts';
import { inside } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { compareInside } from './support/compareInside.ts';
import { otherVersion } from './support/versions.ts';
import { seed } from '../../../support/randomCases.ts';

const VERSIONS: readonly { readonly version: string; readonly dialect: keyof typeof DIALECTS }[] = [
  { version: '1.8.7', dialect: '1.8.7' },
  { version: '1.8.11', dialect: '1.8.10' },
  { version: '1.8.13', dialect: '1.8.10' },
];
const RULES = 500;

let namespace: Namespace;
beforeAll(async () => {
  namespace = await openNamespace();
});
afterAll(() => namespace.close());

const CASES = VERSIONS.flatMap((each) => FAMILIES.map((family) => ({ ...each, family })));

describe.each(CASES)('iptables $version, $family', ({ version, dialect, family }) => {
  beforeEach((context) => requireNamespaces(context));

  test('every kind of rule, and random ones', { timeout: TIMEOUT }, async (context) => {
    const folder = await otherVersion(version, context);
    const { rules, differences } = await compareInside(family, { dialect, numRuns: RULES, seed }, folder);
    expect(differences).toEqual([]);
    expect(rules).toBeGreaterThan(2 * RULES);
  });

  test('the trial finds no difference', async (context) => {
    const folder = await otherVersion(version, context);
    const source = `
      import { IptablesClient } from './src/modes/iptables/client.ts';
      import { findDifference } from './src/modes/iptables/netlink/trial.ts';
      import { LAYOUTS } from './src/modes/iptables/rules/layouts/index.ts';
      import { withChannel } from './src/netlink/channel.ts';
      import { NETLINK_NETFILTER } from './src/netlink/socket.ts';
      process.env.PATH = '${folder}:' + process.env.PATH;
      const client = await IptablesClient.open({ family: '${family}', variant: 'nft' });
      const find = (layout) => withChannel(NETLINK_NETFILTER, (channel) => findDifference(client, channel, layout));
      const differences = [await find(LAYOUTS.current), await find(LAYOUTS.classic)];
      console.log(JSON.stringify({ version: client.version, differences: differences.filter(Boolean) }));`;
    expect(await inside(namespace, 'version-trial', source)).toEqual({ version, differences: [] });
  });
});
