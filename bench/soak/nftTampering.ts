/** What others do to our tables in nftables mode, as scripts of nft. */
import type { Host } from '../../lab/host.ts';
import { named } from '../../test/e2e/support/nftTable.ts';
import type { Tampering } from './modes.ts';
import type { Draw } from './randomServices.ts';

interface Script extends Pick<Tampering, 'name' | 'isHole'> {
  readonly script: (draw: Draw, node: Host) => Promise<string> | string;
}

const family = (draw: Draw): string => ['ip', 'ip6'][draw(2)] ?? 'ip';

/** Of the services that do not change, among others. */
const SHARED = [
  ['set', 'service-ips'],
  ['map', 'any-4'],
  ['map', 'ports-any-4'],
] as const;

const SCRIPTS: readonly Script[] = [
  { name: 'everything flushed', isHole: true, script: () => 'flush ruleset' },
  { name: 'a table deleted', isHole: true, script: (draw) => `delete table ${family(draw)} junction` },
  {
    name: 'a chain flushed',
    isHole: true,
    script: (draw) =>
      `flush chain ${family(draw)} junction ${['services', 'any', 'prerouting', 'service-addresses', 'postrouting'][draw(5)]}`,
  },
  {
    name: 'a base chain deleted',
    isHole: true,
    script: (draw) => {
      const place = `${family(draw)} junction ${['prerouting', 'output', 'postrouting'][draw(3)]}`;
      return `flush chain ${place}\ndelete chain ${place}`;
    },
  },
  {
    name: 'elements of all services deleted',
    isHole: true,
    script: (draw) => {
      const [kind, name] = SHARED[draw(SHARED.length)] ?? ['set', 'service-ips'];
      return `flush ${kind} ${family(draw)} junction ${name}`;
    },
  },
  { name: 'elements deleted', isHole: false, script: randomDeletion },
  {
    name: 'a foreign element',
    isHole: false,
    script: (draw) => `add element ip junction service-ips { 10.99.0.${draw(250)} }`,
  },
  {
    name: 'a foreign rule',
    isHole: false,
    script: (draw) => `add rule ${family(draw)} junction services counter`,
  },
  {
    name: 'a foreign set',
    isHole: false,
    script: (draw) => `add set ${family(draw)} junction foreign-${draw(9)} { type inet_service; }`,
  },
  {
    name: 'another table',
    isHole: false,
    script: (draw) => `add table ip other\nadd chain ip other chain-${draw(9)}`,
  },
];

/** Of services that change anyway, and some of what all share but for addresses of services. */
async function randomDeletion(draw: Draw, node: Host): Promise<string> {
  const sets = (await node.run(['nft', 'list', 'sets', 'ip'])).matchAll(
    /^\tset ((?:cluster-ips|refused|dropped|masquerade-\w+|restricted)) \{$/gm,
  );
  const names = [...sets].map(([, name]) => name);
  const name = names[draw(Math.max(1, names.length))] ?? 'refused';
  const list = await node.run(['nft', await named(node, `list set ip junction ${name}`)]);
  const keys = [...list.matchAll(/(10\.97\.0\.\d+(?: \. \w+ \. \d+)?)/g)].map(([, key]) => key);
  const chosen = [...new Set(keys.filter(() => draw(3) === 0))];
  if (chosen.length === 0) return 'add table ip other';
  return `delete element ip junction ${name} { ${chosen.join(', ')} }`;
}

export const NFT_TAMPERINGS: readonly Tampering[] = SCRIPTS.map(({ name, isHole, script }) => ({
  name,
  isHole,
  command: async (draw, node) => ({
    argv: ['nft', '-f', '-'],
    stdin: await named(node, await script(draw, node)),
  }),
}));
