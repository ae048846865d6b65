/** How pods' traffic is recognised. Interface names end up in rules as they are, so they must be harmless there. */
import { familyOf, parseCidr } from '../model/ip.ts';
import type { EffectiveConfig } from './effective.ts';
import { invalid, unsupported } from './fieldError.ts';

const MODES = ['ClusterCIDR', 'NodeCIDR', 'BridgeInterface', 'InterfaceNamePrefix', ''];
const PAIR =
  'must be a either a single CIDR or dual-stack pair of CIDRs (e.g. [10.100.0.0/16, fde4:8dba:82e1::/48]';
const CIDR = 'must be a valid CIDR block (e.g. 10.100.0.0/16 or fde4:8dba:82e1::/48)';

/** Nothing that could end a word of a rule, or begin an option. */
const INTERFACE = /^[A-Za-z0-9_.:][A-Za-z0-9_.:-]*$/;
/** The kernel's names; iptables writes a prefix with a `+`, which counts too. */
const LONGEST_NAME = 15;
const LONGEST_PREFIX = 14;

export const LOCAL_TRAFFIC_CHECKS: readonly ((config: EffectiveConfig) => readonly string[])[] = [
  ({ detectLocalMode }) =>
    MODES.includes(detectLocalMode) ? [] : [unsupported('DetectLocalMode', detectLocalMode, MODES)],
  ({ detectLocalMode, detectLocal, clusterCIDRs }) => {
    switch (detectLocalMode) {
      case 'BridgeInterface':
        return interfaceName('InterfaceName', detectLocal.bridgeInterface, LONGEST_NAME);
      case 'InterfaceNamePrefix':
        return interfaceName('InterfacePrefix', detectLocal.interfaceNamePrefix, LONGEST_PREFIX);
      case 'ClusterCIDR':
        return cidrs(clusterCIDRs);
      default:
        return [];
    }
  },
];

function interfaceName(field: string, name: string, longest: number): readonly string[] {
  const path = `DetectLocalConfiguration.${field}`;
  if (name === '') return [invalid(path, name, 'must not be empty')];
  if (INTERFACE.test(name) && name.length <= longest) return [];
  const allowed = `1 to ${longest} letters, digits, or any of _ . : -`;
  return [invalid(path, name, `must be the name of an interface: ${allowed}`)];
}

function cidrs(list: readonly string[]): readonly string[] {
  const path = 'DetectLocalConfiguration.ClusterCIDRs';
  if (list.length > 2) return [invalid(path, list, PAIR)];
  const parsed = list.map(parseCidr);
  const families = new Set(parsed.map((cidr) => cidr && familyOf(cidr)));
  const bad = list.flatMap((cidr, index) =>
    parsed[index] ? [] : [invalid(`${path}[${index}]`, cidr, CIDR)],
  );
  return bad.length === 0 && list.length === 2 && families.size === 1 ? [invalid(path, list, PAIR)] : bad;
}
