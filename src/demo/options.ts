/** What `npm start -- …` takes. */
import { parseArgs } from 'node:util';
import { EXAMPLES } from './paths.ts';

export interface DemoOptions {
  /** End after the first table. */
  readonly once: boolean;
  readonly layout: string;
  readonly variant: string;
  readonly manifests: string;
}

export const HELP = `Junction's demo: a cluster of two nodes, four pods and a client outside on this machine,
Junction on one of the nodes, and requests that show who answers.

  npm start                          stay, and show what changes when a file in examples/ is edited
  npm start -- --once                end after the table; exit code 0 if every request went as planned

Options:
  --once                 end after the table
  --layout LAYOUT        how rules are arranged: current (default) or classic
  --variant VARIANT      which iptables: auto (default), nft or legacy
  --manifests DIR        the cluster's objects (default: examples)
  -h, --help             print this
`;

const CHOICES: Readonly<Record<'layout' | 'variant', readonly string[]>> = {
  layout: ['current', 'classic'],
  variant: ['auto', 'nft', 'legacy'],
};

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: DemoOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly message: string };

export function parseOptions(args: readonly string[]): ParsedOptions {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        once: { type: 'boolean', default: false },
        layout: { type: 'string', default: 'current' },
        variant: { type: 'string', default: 'auto' },
        manifests: { type: 'string', default: EXAMPLES },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { kind: 'help' };
    for (const name of ['layout', 'variant'] as const) {
      if (CHOICES[name].includes(values[name])) continue;
      const choices = CHOICES[name].join(', ');
      return { kind: 'mistake', message: `--${name} "${values[name]}" must be one of ${choices}` };
    }
    return { kind: 'run', options: values };
  } catch (error) {
    return { kind: 'mistake', message: error instanceof Error ? error.message : String(error) };
  }
}
