/** The iptables mode's part of a start. */
import { LAYOUTS } from '../backends/iptables/layouts/index.ts';
import { toSettings } from '../config/index.ts';
import { localIps } from '../kernel/interfaces.ts';
import { writeLocalnetGuard } from '../kernel/iptables/localnetGuard.ts';
import { IptablesProxy } from '../kernel/iptables/iptablesProxy.ts';
import { readNftGeneration } from '../kernel/netlink/nftGeneration.ts';
import type { Family } from '../model/ip.ts';
import { doorOf, openDoors } from './families.ts';
import { StaleIpvs } from './ipvsLeftovers.ts';
import type { ModeOptions, ProxyMode } from './mode.ts';
import { removeNftLeftovers } from './nftLeftovers.ts';
import { preflight } from './preflight.ts';

export async function openIptablesMode({ config, nodeName, log, runner }: ModeOptions): Promise<ProxyMode> {
  const doors = await openDoors(config.junction.iptablesVariant, log, runner);
  await preflight('iptables', config, doors, { log, runner });
  const { layout, masqueradeBit } = toSettings(config, nodeName);
  const families = doors.map(({ family }) => family);
  const waiting = new Set<Family>(families);
  const staleIpvs = new StaleIpvs({ log, drainLimitMs: config.junction.ipvsDrainLimit });
  let removing = Promise.resolve();
  return {
    name: 'iptables',
    families,
    backend: (family) =>
      new IptablesProxy({ door: doorOf(doors, family), layout: LAYOUTS[layout], masqueradeBit }),
    ready: (family) => {
      waiting.delete(family);
      if (waiting.size === 0) removing = staleIpvs.remove().then(() => removeNftLeftovers(log));
    },
    guardLocalnet: async () => {
      const door = doors.find(({ family }) => family === 'IPv4');
      if (door) await writeLocalnetGuard(door, LAYOUTS[layout]);
    },
    attach: () => {},
    canary: (family) => doorOf(doors, family),
    fingerprint: (family) => (doorOf(doors, family).variant === 'nft' ? readNftGeneration : undefined),
    localIps: (family) => localIps(family),
    close: async () => {
      await removing;
      await staleIpvs.close();
    },
  };
}
