/** Junction's flags in the demo: once for the process that runs, once for the plan that its work is compared with. */
import { flagsOf } from '../cli/flags.ts';
import { type FlagValues, readSettings, type Settings } from '../cli/settings.ts';
import type { DemoOptions } from './options.ts';

export function junctionArguments(options: DemoOptions): readonly string[] {
  return Object.entries(flagValues(options)).map(([name, value]) => `--${name}=${String(value)}`);
}

export function junctionSettings(options: DemoOptions): Settings {
  return readSettings(flagsOf('run'), flagValues(options));
}

function flagValues({ manifests, layout, variant }: DemoOptions): FlagValues {
  return {
    manifests,
    'hostname-override': 'node1',
    'cluster-cidr': '10.244.0.0/16,fd00:244::/32',
    'iptables-layout': layout,
    'iptables-variant': variant,
    // Somebody is watching: after an edit, the next one need not wait for a second.
    'iptables-min-sync-period': '200ms',
    'logging-format': 'json',
    v: '1',
  };
}
