/** What `junction plan` prints of the IPVS mode: input for four programs, in the order in which it would be written. */
import { filledSets, type IpvsText, printDesiredState, desiredStateOf } from './rules/print.ts';
import { ipvsLayout } from './rules/rules.ts';
import { type WholeRules, wholeRules } from '../iptables/rules/whole.ts';
import type { Settings } from '../../config/index.ts';
import { answersNodePorts } from '../../plan/decide.ts';
import type { Plan } from '../../plan/types.ts';
import { nodeIpsOf } from '../nodeIps.ts';
import { printJumps, restoreCommand } from '../iptables/print.ts';

/** The rules are for when the sets are there. */
type IpvsPlanText = IpvsText & WholeRules;

export function ipvsPlanText(plan: Plan, settings: Settings): IpvsPlanText {
  const { family, view } = plan;
  const nodeIps = nodeIpsOf(family);
  const nodePortIps = nodeIps.filter((ip) => answersNodePorts(view.nodePorts, ip));
  const desired = desiredStateOf(plan, { family, scheduler: settings.scheduler, nodeIps, nodePortIps });
  const rules = wholeRules(ipvsLayout, plan, {
    family,
    view,
    nodePortIps: 'all',
    masqueradeMark: (1 << settings.masqueradeBit) >>> 0,
    randomFully: true,
    dropInvalid: false,
    nfacct: { invalidDropped: false, localhostNodePorts: false },
    endpointComments: false,
    filledSets: filledSets(desired),
  });
  return { ...printDesiredState(desired, family), ...rules };
}

export function printIpvsPlan(plan: Plan, settings: Settings): string {
  const text = ipvsPlanText(plan, settings);
  const parts = [
    ['sets', 'ipset restore -exist', text.ipset],
    ['virtual servers', 'ipvsadm --restore', text.ipvsadm],
    ['rules', restoreCommand(plan.family), text.restore + printJumps(text)],
    ['addresses', 'ip -force -batch -', text.ip],
  ] as const;
  return parts
    .map(([what, command, part]) => `# ${plan.family}, ${what}, for: ${command}\n${part}`)
    .join('\n');
}
