/** Random steps through the real client: the kernel answers as the one in memory, and ends up with the same. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { inside, output } from '../../../system/support/inside.ts';
import { type Namespace, openNamespace, requireNamespaces } from '../../../system/support/namespace.ts';
import { requireNft } from './requireNft.ts';
import { numRuns as runs, seed } from '../../../support/randomCases.ts';

let namespace: Namespace;
beforeEach(async (context) => {
  requireNamespaces(context);
  requireNft(context);
  namespace = await openNamespace();
});
afterEach(() => namespace.close());

const FOREIGN = `
  add table ip foreign; add chain ip foreign base { type nat hook prerouting priority -90; };
  add rule ip foreign base ip daddr 10.96.0.1 counter accept;
  add table ip6 junction; add set ip6 junction theirs { type ipv6_addr; };`;

test("whatever happens, and nobody else's table is touched", {
  timeout: 300_000 + 10_000 * runs,
}, async () => {
  await output(namespace, 'nft', FOREIGN);
  const others = async (): Promise<readonly string[]> => [
    await output(namespace, 'nft', 'list', 'table', 'ip', 'foreign'),
    await output(namespace, 'nft', 'list', 'table', 'ip6', 'junction'),
  ];
  const before = await others();
  const answer = await inside(
    namespace,
    'nftPaired',
    `
    import fc from 'fast-check';
    import { directChannel } from './src/netlink/channel.ts';
    import { NETLINK_NETFILTER, NetlinkSocket } from './src/netlink/socket.ts';
    import { NetlinkNftClient } from './src/modes/nftables/client.ts';
    import { survivorOf } from './test/modes/anySteps.ts';
    import { anySteps, perform } from './test/modes/nftables/rules/anySteps.ts';
    import { Harness } from './test/modes/nftables/rules/harness.ts';
    import { PairedKernel } from './test/modes/nftables/rules/pairedKernel.ts';
    const client = new NetlinkNftClient('IPv4', directChannel(NetlinkSocket.open(NETLINK_NETFILTER)));
    let failure = null;
    for (const [run, steps] of fc.sample(anySteps, { seed: ${seed}, numRuns: ${runs} }).entries()) {
      await client.commit([{ kind: 'addTable' }, { kind: 'deleteTable' }]);
      let harness = new Harness({ kernel: new PairedKernel(client, 'IPv4') });
      for (const [index, step] of steps.entries()) {
        harness = survivorOf(harness, step);
        try {
          await perform(harness, step);
          // Either a fresh start after each step, or so long a pause that what is in no use is removed.
          if (run % 2 === 0) await harness.restarted().sync();
          else {
            harness.wait(60_000);
            await harness.sync();
            const { suspects } = await harness.verify();
            if (suspects > 0) throw new Error(suspects + ' suspects in a table that was just written');
          }
        } catch (error) {
          failure ??= { steps: steps.slice(0, index + 1), error: error.stack };
        }
      }
    }
    console.log(JSON.stringify(failure));`,
  );
  expect(answer).toBeNull();
  expect(await others()).toEqual(before);
});
