/** What `npm start -- …` takes. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { didYouMean } from '../../src/text/suggest.ts';
import { EXAMPLES } from './paths.ts';

export type DemoMode = 'iptables' | 'ipvs' | 'nftables';

export interface DemoOptions {
  readonly mode: DemoMode;
  /** End after the first table. */
  readonly once: boolean;
  readonly layout: string;
  readonly variant: string;
  readonly manifests: string;
  /** Junction runs from this image, as the DaemonSet runs it, and not from the checkout. */
  readonly image?: string | undefined;
}

export const HELP = `Junction's demo: a cluster of two nodes, four pods and a client outside on this
machine, Junction on one of the nodes, and requests that show who answers.

  npm start                     stay, and show what changes, and why, when a
                                file in examples/ is edited
  npm start -- --once           end after the table; exit code 0 if every
                                request went as planned
  npm start -- --mode nftables  the same cluster and requests in another mode

Options, after the --:
  --mode MODE        what Junction programs: iptables (default), nftables or
                     ipvs. For ipvs, which many kernels lack, the cluster runs
                     in a Linux of its own (User-mode Linux, package
                     user-mode-linux); that takes up to a minute
  --once             end after the table
  --layout LAYOUT    how rules are arranged in the mode iptables: current
                     (default) or classic
  --variant VARIANT  which iptables: auto (default), nft or legacy; not in the
                     mode nftables
  --manifests PATH   the cluster's objects: a directory or a file (default:
                     examples)
  --image PATH       run Junction from an image that npm run image has written,
                     with the DaemonSet's permissions, by runc; as root, and not
                     in the mode ipvs
  -h, --help         print this
`;

const DEFAULTS = { mode: 'iptables', layout: 'current', variant: 'auto' } as const;

const CHOICES = {
  mode: ['iptables', 'ipvs', 'nftables'],
  layout: ['current', 'classic'],
  variant: ['auto', 'nft', 'legacy'],
} as const satisfies Record<string, readonly string[]>;

const NAMES = ['mode', 'once', 'layout', 'variant', 'manifests', 'image', 'help'];

export type ParsedOptions =
  | { readonly kind: 'run'; readonly options: DemoOptions }
  | { readonly kind: 'help' }
  | { readonly kind: 'mistake'; readonly message: string };

export function parseOptions(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>> = process.env,
): ParsedOptions {
  const kept = keptByNpm(args, env);
  if (kept !== undefined) return mistake(kept);
  const unknown = args.find((arg) => arg.startsWith('--') && arg.length > 2 && !NAMES.includes(nameOf(arg)));
  if (unknown !== undefined) {
    const known = NAMES.map((name) => `--${name}`);
    return mistake(`Unknown option --${nameOf(unknown)}${didYouMean(`--${nameOf(unknown)}`, known)}`);
  }
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        mode: { type: 'string' },
        once: { type: 'boolean', default: false },
        layout: { type: 'string' },
        variant: { type: 'string' },
        manifests: { type: 'string', default: EXAMPLES },
        image: { type: 'string' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) return { kind: 'help' };
    for (const name of ['mode', 'layout', 'variant'] as const) {
      const value = values[name];
      const choices: readonly string[] = CHOICES[name];
      if (value === undefined || choices.includes(value)) continue;
      return mistake(
        `--${name} "${value}" must be one of ${choices.join(', ')}${didYouMean(value, choices)}`,
      );
    }
    const mode = CHOICES.mode.find((each) => each === values.mode) ?? DEFAULTS.mode;
    const reason = withoutEffect(mode, values);
    if (reason !== undefined) return mistake(reason);
    const { layout = DEFAULTS.layout, variant = DEFAULTS.variant, once, manifests, image } = values;
    if (!existsSync(manifests)) return mistake(`--manifests ${manifests} does not exist`);
    if (image !== undefined && !existsSync(image))
      return mistake(`--image ${image} does not exist; npm run image writes one to release/`);
    return { kind: 'run', options: { mode, layout, variant, once, manifests, image } };
  } catch (error) {
    return mistake(error instanceof Error ? error.message : String(error));
  }
}

function withoutEffect(
  mode: DemoMode,
  { layout, variant, image }: Partial<Record<'layout' | 'variant' | 'image', string | undefined>>,
): string | undefined {
  if (image !== undefined && mode === 'ipvs')
    return '--image is not for --mode ipvs, in which the cluster runs in a Linux of its own';
  if (layout !== undefined && mode !== 'iptables')
    return `--layout is for --mode iptables, and this is --mode ${mode}`;
  if (variant !== undefined && mode === 'nftables') return '--variant is not for --mode nftables';
  if (variant === 'nft' && mode === 'ipvs')
    return '--variant nft is not for --mode ipvs: the kernel that the cluster then runs in has legacy iptables alone';
  return undefined;
}

/** `npm start --mode=ipvs` without the `--`: npm takes the option for one of its own, and hands over the rest. */
function keptByNpm(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const kept = NAMES.filter((name) => env[`npm_config_${name}`] !== undefined);
  if (env['npm_lifecycle_event'] === undefined || kept.length === 0) return undefined;
  const rest = [...args];
  const words = kept.flatMap((name) => {
    const value = env[`npm_config_${name}`] ?? '';
    if (value !== 'true' && value !== '') return [`--${name}`, value];
    // npm hands over the value of an option that it does not know as a word by itself.
    return name === 'once' || rest[0]?.startsWith('-') !== false
      ? [`--${name}`]
      : [`--${name}`, ...rest.splice(0, 1)];
  });
  const wanted = ['npm start --', ...words, ...rest].join(' ');
  return `npm keeps options that come before "--" for itself. Did you mean: ${wanted}`;
}

function nameOf(argument: string): string {
  return argument.slice(2).split('=', 1)[0] ?? '';
}

function mistake(message: string): ParsedOptions {
  return { kind: 'mistake', message };
}
