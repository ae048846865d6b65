/** What others do to our tables in iptables mode, by programs of the same variant. */
import type { Host } from '../../lab/host.ts';
import type { TamperCommand, Tampering } from './modes.ts';
import type { Draw } from './randomServices.ts';

type Variant = 'nft' | 'legacy';
type Program = `${'iptables' | 'ip6tables'}-${Variant}`;

const LOCK_SECONDS = '60';
const CHAINS = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING'] as const;

export function iptablesTamperings(variant: Variant): readonly Tampering[] {
  const program = (draw: Draw): Program => `${draw(2) === 0 ? 'iptables' : 'ip6tables'}-${variant}`;
  /** Lines of iptables-save in its nat table that have this. */
  const rules = async (node: Host, of: Program, wanted: RegExp): Promise<readonly string[]> =>
    (await node.run([`${of}-save`, '-t', 'nat'])).split('\n').filter((line) => wanted.test(line));
  const restore = (of: Program, ...lines: readonly string[]): TamperCommand => ({
    argv: [`${of}-restore`, '-w', LOCK_SECONDS, '--noflush'],
    stdin: `*nat\n${lines.join('\n')}\nCOMMIT\n`,
  });
  const deletionOf = async (draw: Draw, node: Host, wanted: RegExp): Promise<TamperCommand> => {
    const of = program(draw);
    const found = await rules(node, of, wanted);
    const chosen = found.filter(() => draw(3) === 0);
    return restore(of, ...chosen.map((line) => line.replace(/^-A/, '-D')));
  };
  const flushOfAll: TamperCommand =
    variant === 'nft'
      ? { argv: ['nft', 'flush', 'ruleset'] }
      : {
          argv: [`iptables-${variant}-restore`, '-w', LOCK_SECONDS],
          stdin: '*mangle\nCOMMIT\n*nat\nCOMMIT\n*filter\nCOMMIT\n',
        };
  const all: readonly Tampering[] = [
    { name: 'everything flushed', isHole: true, command: () => Promise.resolve(flushOfAll) },
    {
      name: 'a chain flushed',
      isHole: true,
      command: (draw) =>
        Promise.resolve(restore(program(draw), `-F ${CHAINS[draw(CHAINS.length)] ?? CHAINS[0]}`)),
    },
    {
      name: 'jumps deleted',
      isHole: true,
      command: (draw, node) => deletionOf(draw, node, /^-A (?:PREROUTING|OUTPUT|POSTROUTING) .*KUBE-/),
    },
    {
      name: 'rules of services deleted',
      isHole: false,
      command: (draw, node) => deletionOf(draw, node, /^-A KUBE-.*soak\/slot-/),
    },
    {
      name: 'a foreign rule',
      isHole: false,
      command: (draw) =>
        Promise.resolve(restore(program(draw), `-A KUBE-SERVICES -m comment --comment foreign-${draw(9)}`)),
    },
    {
      name: 'a stale chain',
      isHole: false,
      command: (draw) =>
        Promise.resolve(restore(program(draw), `:KUBE-SVC-${'ABCDEFGHI'[draw(9)]?.repeat(16)} - [0:0]`)),
    },
    {
      name: 'a chain of another program',
      isHole: false,
      command: (draw) => {
        const chain = `OTHER-${draw(9)}`;
        return Promise.resolve(restore(program(draw), `:${chain} - [0:0]`, `-A ${chain} -j RETURN`));
      },
    },
    {
      name: 'a rule of another program',
      isHole: false,
      command: (draw) =>
        Promise.resolve(restore(program(draw), `-A POSTROUTING -m comment --comment other-${draw(9)}`)),
    },
  ];
  // Of legacy tables the kernel notifies of nothing: only a flush is noticed within the run.
  return variant === 'nft'
    ? all
    : all.filter(({ name }) => /flushed|another program/.test(name) && name !== 'a chain flushed');
}
