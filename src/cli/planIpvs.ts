/** What `junction plan` prints of the IPVS mode: input for four programs, in the order in which it would be written. */
import { filledSets, type IpvsText, printLedger, wholeLedger } from '../backends/ipvs/print.ts';
import { ipvsLayout } from '../backends/ipvs/rules.ts';
import { wholeRestore } from '../backends/iptables/whole.ts';
import type { Settings } from '../config/index.ts';
import { answersNodePorts } from '../plan/decide.ts';
import type { Plan } from '../plan/types.ts';
import { nodeIpsOf } from './nodeIps.ts';

export interface IpvsPlanText extends IpvsText {
  /** For `iptables-restore --noflush`, when the sets are there. */
  readonly restore: string;
}

export function ipvsPlanText(plan: Plan, settings: Settings): IpvsPlanText {
  const { family, view } = plan;
  const nodeIps = nodeIpsOf(family);
  const nodePortIps = nodeIps.filter((ip) => answersNodePorts(view.nodePorts, ip));
  const ledger = wholeLedger(plan, { family, scheduler: settings.scheduler, nodeIps, nodePortIps });
  const restore = wholeRestore(ipvsLayout, plan, {
    family,
    view,
    nodePortIps: 'all',
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    randomFully: true,
    dropInvalid: false,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
    endpointComments: false,
    filledSets: filledSets(ledger),
  });
  return { ...printLedger(ledger, family), restore };
}

export function printIpvsPlan(plan: Plan, settings: Settings): string {
  const { ipset, ipvsadm, ip, restore } = ipvsPlanText(plan, settings);
  const program = plan.family === 'IPv4' ? 'iptables-restore' : 'ip6tables-restore';
  const parts = [
    ['sets', 'ipset restore -exist', ipset],
    ['virtual servers', 'ipvsadm --restore', ipvsadm],
    ['rules', `${program} --noflush --counters`, restore],
    ['addresses', 'ip -batch -', ip],
  ] as const;
  return parts
    .map(([what, command, text]) => `# ${plan.family}, ${what}, for: ${command}\n${text}`)
    .join('\n');
}
