/** Junction's flags in the demo: once for the process that runs, once for the plan that its work is compared with. */
import {
  isValid,
  loadConfig,
  parseCommandLine,
  type Settings,
  toSettings,
  validate,
} from '../config/index.ts';
import type { DemoOptions } from './options.ts';

const NODE = 'node1';

export function junctionArguments({ manifests, layout, variant }: DemoOptions): readonly string[] {
  return [
    `--manifests=${manifests}`,
    `--hostname-override=${NODE}`,
    '--cluster-cidr=10.244.0.0/16,fd00:244::/32',
    `--iptables-layout=${layout}`,
    `--iptables-variant=${variant}`,
    // Somebody is watching: after an edit, the next one need not wait for a second.
    '--iptables-min-sync-period=200ms',
    '--logging-format=json',
    '--v=1',
  ];
}

export function junctionSettings(options: DemoOptions): Settings {
  const parsed = parseCommandLine(junctionArguments(options));
  if (!parsed.ok) throw new Error(parsed.problems.join('; '));
  const loaded = loadConfig(parsed.value, { readFile: () => '' });
  if (!loaded.ok) throw new Error(loaded.problems.join('; '));
  const { config } = loaded.value;
  if (!isValid(config)) throw new Error(validate(config).join('; '));
  return toSettings(config, NODE);
}
