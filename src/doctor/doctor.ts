/** `junction doctor`: everything on this node that keeps services from working, in one run. Reads; sends nothing unless asked to probe. */
import type { ValidConfig } from '../config/effective.ts';
import type { Subject } from '../explain/subject.ts';

import type { Family } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import { answersOnLoopback } from '../modes/iptables/prerequisites.ts';
import type { Machine } from '../modes/prerequisites/machine.ts';
import { checkServer, checkSource, type ServerLook } from './apiServer.ts';
import { checkConntrack, readConntrackStatistics } from './conntrack.ts';
import { checkFirewall } from './firewall.ts';
import { examine, type GroupCheck } from './group.ts';
import { checkKernel } from './kernel.ts';
import { type DoctorMachine, familiesHere } from './machine.ts';
import { checkOtherProxies } from './otherProxies.ts';
import { probe, type ProbeOptions } from './probe.ts';
import { checkProxy, type ProxyLook } from './proxy.ts';
import {
  DOCTOR_GROUPS,
  type DoctorGroup,
  type DoctorGroupName,
  type DoctorReport,
} from '../explain/doctorReport.ts';
import { checkRoutes, type SampledEndpoint } from './routes.ts';
import { checkRules } from './rules.ts';
import { checkSavedRulesets } from './savedRulesets.ts';
import { checkServices, walkServices } from './services.ts';
import { checkSysctls } from './sysctls.ts';

interface DoctorOptions {
  readonly config: ValidConfig;
  readonly nodeName: string;
  readonly families: readonly Family[];
  /** What a running proxy says; unset where the question is about something else than this node. */
  readonly proxy?: ProxyLook | undefined;
  /** Unset where no services are known. */
  readonly subject?: Subject | undefined;
  readonly whyNoServices?: string | undefined;
  /** Unset where the API server was not asked. */
  readonly server?: ServerLook | undefined;
  /** Of services, this one alone. */
  readonly service?: ObjectKey | undefined;
  /** Unset: all groups. */
  readonly only?: readonly string[] | undefined;
  /** Unset: no connection is opened. */
  readonly probe?: ProbeOptions | undefined;
  /** Unset: of this node only what the subject says is looked at. */
  readonly machines?: { readonly doctor: DoctorMachine; readonly checks: Machine } | undefined;
}

export async function doctor(options: DoctorOptions): Promise<DoctorReport> {
  const { config, nodeName, only } = options;
  const checks = checksOf(options);
  const groups: DoctorGroup[] = [];
  for (const name of DOCTOR_GROUPS) {
    const check = only && !only.includes(name) ? undefined : checks[name];
    if (check) groups.push(await examine(name, check));
  }
  return {
    node: nodeName,
    mode: config.mode,
    at: Date.now(),
    hasProblems: groups.some(({ findings }) => findings.some(({ severity }) => severity !== 'info')),
    groups,
  };
}

type Checks = Partial<Record<DoctorGroupName, GroupCheck>>;

function checksOf(options: DoctorOptions): Checks {
  const { proxy, subject, server, machines, service, probe: probing } = options;
  const { whyNoServices = 'none are known' } = options;
  const status = proxy?.status;
  return {
    ...(machines && machineChecks(options, machines)),
    ...((status ?? server) && {
      'api-server': (group) => {
        if (status) checkSource(group, status.source, status.now);
        if (server) checkServer(group, server);
      },
    }),
    services: (group) =>
      subject ? checkServices(group, subject, service) : group.notEvaluated('services', whyNoServices),
    ...(subject && {
      rules: (group) => checkRules(group, subject.families, status !== undefined),
      packets: (group) => walkServices(group, subject, service),
      ...(probing && { probe: (group) => probe(group, subject.families, probing) }),
    }),
  };
}

function machineChecks(
  { config, nodeName, families: asked, proxy, subject }: DoctorOptions,
  { doctor: machine, checks: trials }: NonNullable<DoctorOptions['machines']>,
): Checks {
  const { mode, conntrack } = config;
  const families = familiesHere(asked, machine);
  const localhostNodePorts = mode === 'iptables' && answersOnLoopback(config);
  const statistics = readConntrackStatistics(machine);
  return {
    kernel: (group) => checkKernel(group, config, asked, trials),
    sysctls: (group) =>
      checkSysctls(group, machine, { families, unused: unusedOf(subject), conntrack, localhostNodePorts }),
    'other-proxies': (group) => checkOtherProxies(group, machine, mode, nodeName),
    firewall: async (group) => {
      await checkFirewall(group, machine, families);
      if (mode === 'nftables') checkSavedRulesets(group, machine);
    },
    ...(subject && { routes: (group) => checkRoutes(group, machine, endpointsOf(subject)) }),
    ...(proxy && { proxy: (group) => checkProxy(group, machine, proxy, config.syncPeriodMs) }),
    // At last: what was dropped since the beginning is dropped now.
    conntrack: (group) => checkConntrack(group, machine, statistics),
  };
}

/** Families without a service beside one with services. */
function unusedOf(subject: Subject | undefined): readonly Family[] {
  const unused = subject?.families.filter(({ plan }) => plan.servicePorts.size === 0) ?? [];
  return unused.length === subject?.families.length ? [] : unused.map(({ family }) => family);
}

/** Ready ones, in the order of the services. */
function* endpointsOf({ families, nodeName }: Subject): Generator<SampledEndpoint> {
  for (const family of families)
    for (const service of family.services())
      for (const { endpoints, ports } of family.slicesOf(service))
        for (const { ip, nodeName: node, ready } of endpoints)
          if (ready) yield { ip, port: ports[0]?.port ?? 0, service, node, isLocal: node === nodeName };
}
