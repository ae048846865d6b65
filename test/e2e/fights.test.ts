/** Two managers of the same rules: Junction repairs less and less often, says once who they are, and is right in the end. */
import { describe, expect, test } from 'vitest';
import type { Host } from '../../lab/host.ts';
import { useLab } from '../lab/requireLab.ts';
import { Daemon, eventually } from './daemon.ts';
import { ourRules } from './support/rules.ts';
import { useInLab } from './support/use.ts';
import { manifests } from './cluster.ts';

interface Fight {
  readonly title: string;
  readonly flags: readonly string[];
  readonly read: (node: Host) => Promise<string>;
  /** A command of the shell that removes it; fails where it is not there. */
  readonly remove: string;
  /** By the kernel's name for it. */
  readonly program: string;
  readonly object: string;
}

const FIGHTS: readonly Fight[] = [
  {
    title: 'over a jump, iptables-nft',
    flags: ['--iptables-variant=nft'],
    read: (node) => ourRules(node, 'iptables-nft-save'),
    remove:
      'iptables-nft -w 60 -t nat -D PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES',
    program: 'iptables-nft',
    object: 'chain nat PREROUTING',
  },
];

/**
 * The sixth removal right after a repair is a fight; from then on a repair waits for 1 s, then for 2 s. One more, because
 * a removal that comes before Junction knows that its repair is done counts with the one before it.
 */
const REMOVALS = 7;
/** Removes it whenever it is back, so often and for a minute at most. */
const manager = (remove: string): string => `removed=0
for turn in $(seq 600); do
  if { ${remove}; } 2>/dev/null; then removed=$((removed + 1)); fi
  if [ $removed = ${REMOVALS} ]; then exit 0; fi
  sleep 0.1
done
exit 1`;

describe.each(FIGHTS)('a fight $title', ({ flags, read, remove, program, object }) => {
  const lab = useLab();
  const node = (): Host => lab().host('node1');
  const daemon = useInLab(async () => {
    const made = await Daemon.create(node(), '--iptables-sync-period=1h', ...flags);
    await made.write(manifests([{ name: 'web', ip: '10.96.1.1', pods: 'ac' }]));
    await made.start();
    return made;
  });

  test('is damped, told once, and won by who stays', async () => {
    const whole = await read(node());
    await node().run(['sh', '-c', manager(remove)], { timeoutMs: 120_000 });
    await eventually('the rules, after the other has ended', async () => (await read(node())) === whole);

    const fights = daemon().log.match(/^.*keep undoing each other's changes.*$/gm) ?? [];
    expect(fights).toHaveLength(1);
    expect(fights[0]).toMatch(
      new RegExp(`Junction \\(pid \\d+\\) and another program \\(${program} \\(pid \\d+\\)\\) keep undoing`),
    );
    expect(fights[0]).toContain(`objects="${object}`);
    await eventually('the last repair', () => waits().length === REMOVALS);
    expect(waits().at(-1)).toBeGreaterThanOrEqual(1000);
  });

  /** How long each repair took from the change on, in milliseconds. */
  function waits(): readonly number[] {
    const lines = daemon().log.matchAll(
      /"Another program changed our rules; repaired".* milliseconds=(\d+)/g,
    );
    return [...lines].map(([, milliseconds]) => Number(milliseconds));
  }
});
