/** `npm run bench -- drift`: how soon Junction notices that another program changed its rules, and how soon they are back. */
import { printColumns } from '../../src/cli/table.ts';
import { choiceOption, countsOption, numberOption, progress, refuseUnknown } from '../arguments.ts';
import { type Namespace, openNamespace } from '../namespace.ts';
import { Junction } from './junction.ts';

interface Change {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  readonly variants: readonly string[];
}

const JUMP = ['-m', 'comment', '--comment', 'kubernetes service portals', '-j', 'KUBE-SERVICES'];
const START_MS = 300_000;
/** Longer than ten sync periods would be a failure. */
const LIMIT_MS = 330_000;

const changesOf = (variant: string): readonly Change[] => [
  {
    name: 'one jump deleted',
    command: [`iptables-${variant}`, '-w', '60', '-t', 'nat', '-D', 'PREROUTING', ...JUMP],
    variants: ['nft', 'legacy'],
  },
  {
    name: 'iptables -t nat -F',
    command: [`iptables-${variant}`, '-w', '60', '-t', 'nat', '-F'],
    variants: ['nft', 'legacy'],
  },
  { name: 'nft flush ruleset', command: ['nft', 'flush', 'ruleset'], variants: ['nft'] },
];

export async function driftCommand(args: readonly string[]): Promise<void> {
  refuseUnknown(args, ['--sizes', '--variant', '--sync-period']);
  const sizes = countsOption(args, '--sizes', '1,1000,10000');
  const variant = choiceOption(args, '--variant', ['nft', 'legacy']);
  const syncPeriod = numberOption(args, '--sync-period', 30);
  const rows: (readonly string[])[] = [];
  for (const services of sizes) {
    const namespace = await openNamespace();
    const flags = [`--iptables-variant=${variant}`, `--iptables-sync-period=${syncPeriod}s`];
    const junction = new Junction(namespace, services, flags);
    try {
      progress(`${services} services: start`);
      if (!(await junction.says(/"Serving" ipFamily="IPv4"/, 0, START_MS)))
        throw new Error('it never served');
      for (const change of changesOf(variant).filter(({ variants }) => variants.includes(variant))) {
        progress(`${services} services: ${change.name}`);
        rows.push([String(services), change.name, ...(await measure(junction, namespace, change, variant))]);
      }
    } finally {
      await junction.close();
      namespace.close();
    }
  }
  progress('');
  const header = ['SERVICES', 'CHANGE', 'NOTICED AFTER', 'ALL BACK AFTER', 'CHANGED BY'];
  process.stdout.write(
    `iptables mode, ${variant} variant, a sync period of ${syncPeriod} s\n\n${printColumns(header, rows)}`,
  );
}

/** From the end of the command. When it was noticed is told by the line that tells of the repair. */
async function measure(
  junction: Junction,
  { runner }: Namespace,
  { command }: Change,
  variant: string,
): Promise<readonly string[]> {
  const before = await rules(runner, variant);
  const from = junction.mark;
  const { code, stderr } = await runner(command);
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr}`);
  const ended = performance.now();
  const line = await junction.says(/; repaired" ipFamily="IPv4".*/, from, LIMIT_MS);
  if (!line) return ['never', 'never', ''];
  const repairMs = Number(/milliseconds=(\d+)/.exec(line.text)?.[1]);
  const backMs = line.at - ended;
  const changedBy = /changedBy="([^"]*)"/.exec(line.text)?.[1] ?? '';
  const isWhole = (await rules(runner, variant)) === before;
  return [
    print(Math.max(0, backMs - repairMs)),
    isWhole ? print(Math.max(0, backMs)) : 'not all',
    changedBy.replace(/ \(.*/, ''),
  ];
}

/** Of ours, in any order. */
async function rules(runner: Namespace['runner'], variant: string): Promise<string> {
  const { stdout } = await runner([`iptables-${variant}-save`]);
  const ours = stdout.split('\n').filter((line) => line.startsWith('-A') && line.includes('KUBE-'));
  return ours.sort().join('\n');
}

function print(milliseconds: number): string {
  return milliseconds >= 1000 ? `${(milliseconds / 1000).toFixed(1)} s` : `${Math.round(milliseconds)} ms`;
}
