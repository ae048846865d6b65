/** Junction's flags in the demo: once for the process that runs, once for the plan that its work is compared with. */
import { parseCommandLine } from '../../src/config/commandLine.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Settings, toSettings } from '../../src/config/settings.ts';
import { isValid, validate } from '../../src/config/validate.ts';
import type { DemoMode, DemoOptions } from './options.ts';

export const NODE = 'node1';

/** `socket`: where it answers questions; without one, nowhere. */
export function junctionArguments(options: DemoOptions, socket = ''): readonly string[] {
  return [
    `--manifests=${options.manifests}`,
    `--proxy-mode=${options.mode}`,
    `--hostname-override=${NODE}`,
    '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
    ...FLAGS_OF_MODE[options.mode](options),
    // Not the machine's: a Junction may run there.
    `--api-socket=${socket}`,
    '--logging-format=json',
    '--v=1',
  ];
}

/** Somebody is watching: after an edit, the next one need not wait for a second. */
const MIN_SYNC_PERIOD = '200ms';

/** As the other modes do by default. */
const EVERY_NODE_ADDRESS = '--nodeport-addresses=0.0.0.0/0,::/0';

const FLAGS_OF_MODE: Readonly<Record<DemoMode, (options: DemoOptions) => readonly string[]>> = {
  iptables: ({ layout, variant }) => [
    `--iptables-layout=${layout}`,
    `--iptables-variant=${variant}`,
    `--iptables-min-sync-period=${MIN_SYNC_PERIOD}`,
  ],
  // The guest's kernel has no nftables for IPv4.
  ipvs: () => ['--iptables-variant=legacy', `--ipvs-min-sync-period=${MIN_SYNC_PERIOD}`],
  // The page shows what is counted.
  nftables: () => [
    `--iptables-min-sync-period=${MIN_SYNC_PERIOD}`,
    EVERY_NODE_ADDRESS,
    '--nftables-counters',
  ],
};

export function junctionSettings(options: DemoOptions): Settings {
  const parsed = parseCommandLine(junctionArguments(options));
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const loaded = loadConfig(parsed.value, () => '');
  if (!loaded.ok) throw new Error(loaded.problems.join('; '));
  const { config } = loaded.value;
  if (!isValid(config)) throw new Error(validate(config).join('; '));
  return toSettings(config, NODE);
}
