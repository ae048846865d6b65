/** Other service proxies: a kube-proxy that runs beside us, and objects of a mode that does not run here any more. */
import { isJunctionError } from '../errors.ts';
import { FAMILIES, type Family } from '../model/ip.ts';
import type { ModeName } from '../model/mode.ts';
import { DEVICE } from '../modes/ipvs/rules/client.ts';
import { KUBE_PROXY_TABLE, OWN_TABLES } from '../modes/nftables/cleanup.ts';
import type { GroupFindings } from './group.ts';
import type { DoctorMachine } from './machine.ts';

export async function checkOtherProxies(
  group: GroupFindings,
  machine: DoctorMachine,
  mode: ModeName,
  nodeName: string,
): Promise<void> {
  const isRunning = checkKubeProxy(group, machine, nodeName);
  await checkTables(group, machine, mode, isRunning);
  if (mode === 'nftables') await checkIptables(group, machine, isRunning);
  if (mode !== 'ipvs') await checkDevice(group, machine);
}

/** Returns whether one runs. */
function checkKubeProxy(group: GroupFindings, machine: DoctorMachine, nodeName: string): boolean {
  const processes = machine.processesNamed('kube-proxy');
  if (processes.length === 0) {
    group.fine('no kube-proxy runs in this network namespace');
    return false;
  }
  group.found({
    code: 'kube-proxy-running',
    severity: 'error',
    text: 'kube-proxy runs on this node too',
    evidence: processes.join('; '),
    consequence:
      "with Junction beside it, both write rules for the same services, and undo each other's work",
    cure: `kubectl label node ${nodeName} service-proxy=junction, where its DaemonSet leaves out such nodes (docs/deployment.md); or stop one of the two`,
  });
  return true;
}

async function checkTables(
  group: GroupFindings,
  machine: DoctorMachine,
  mode: ModeName,
  isRunning: boolean,
): Promise<void> {
  const stale = await machine.tables([KUBE_PROXY_TABLE, ...(mode === 'nftables' ? [] : OWN_TABLES)]);
  for (const { family, table, objects } of stale)
    group.found({
      code: 'stale-table',
      severity: 'warning',
      text:
        table === KUBE_PROXY_TABLE
          ? `${isRunning ? '' : 'no kube-proxy runs, and '}its nftables table is there`
          : 'a table of the nftables mode is there, which does not run',
      evidence: `table ${family} ${table} with ${objects} sets, maps and chains`,
      consequence: 'it goes on translating packets to services, to endpoints that may be gone',
      cure:
        table === KUBE_PROXY_TABLE
          ? `nft delete table ${family} ${table}, once no kube-proxy runs`
          : 'junction cleanup --mode nftables',
    });
  if (stale.length === 0) group.fine('no nftables table of another proxy or mode');
}

/** In nftables mode nothing writes these. */
async function checkIptables(
  group: GroupFindings,
  machine: DoctorMachine,
  isRunning: boolean,
): Promise<void> {
  for (const family of FAMILIES) {
    const counted = await countStale(group, machine, family);
    if (counted === undefined) continue;
    const { chains, rules } = counted;
    if (chains + rules === 0) {
      group.fine(`no rules of an iptables or ipvs mode (${family})`);
      continue;
    }
    group.found({
      code: 'stale-iptables-rules',
      severity: 'warning',
      text: `rules of an iptables or ipvs mode are there (${family})${isRunning ? ', as a kube-proxy runs' : ', and none runs'}`,
      evidence: `${chains} chains, ${rules} rules in chains of others`,
      consequence: 'they translate packets before ours do, to endpoints that may be gone',
      cure: 'junction cleanup --mode iptables, once no kube-proxy runs',
    });
  }
}

async function countStale(
  group: GroupFindings,
  machine: DoctorMachine,
  family: Family,
): Promise<{ readonly chains: number; readonly rules: number } | undefined> {
  try {
    return await machine.staleRules(family);
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    // Nothing has written rules with a program that is not there.
    if (error.code !== 'PROGRAM_MISSING') group.notEvaluated(`stale rules, ${family}`, error.message);
    return undefined;
  }
}

async function checkDevice(group: GroupFindings, machine: DoctorMachine): Promise<void> {
  const device = (await machine.links()).find(({ name }) => name === DEVICE);
  if (device === undefined) {
    group.fine(`no device ${DEVICE}`);
    return;
  }
  group.found({
    code: 'stale-ipvs-device',
    severity: 'warning',
    text: 'objects of an ipvs mode are there, which does not run',
    evidence: `device ${DEVICE} (${device.kind ?? 'no dummy'})`,
    consequence: "addresses on it are this node's own: packets to them end here, whatever the rules say",
    cure: 'junction cleanup --mode ipvs',
  });
}
