/** `junction doctor`: everything on this node that keeps services from working, in one run. Reads; sends nothing unless asked to probe. */
import type { ValidConfig } from '../config/effective.ts';
import type { Subject } from '../explain/subject.ts';

import type { Family } from '../model/ip.ts';
import { preflightSettings } from '../modes/prerequisites.ts';
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
import type { DoctorGroup, DoctorReport } from './report.ts';
import { checkRoutes, type SampledEndpoint } from './routes.ts';
import { checkRules } from './rules.ts';
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
  /** Unset: no connection is opened. */
  readonly probe?: ProbeOptions | undefined;
  /** Unset: of this node only what the subject says is looked at. */
  readonly machines?: { readonly doctor: DoctorMachine; readonly checks: Machine } | undefined;
}

export async function doctor(options: DoctorOptions): Promise<DoctorReport> {
  const { config, nodeName, machines } = options;
  const groups: DoctorGroup[] = [];
  const statistics = machines && readConntrackStatistics(machines.doctor);
  for (const [name, check] of checksOf(options)) groups.push(await examine(name, check));
  // At last: what was dropped since the beginning is dropped now.
  if (machines && statistics)
    groups.push(await examine('conntrack', (group) => checkConntrack(group, machines.doctor, statistics)));
  return {
    node: nodeName,
    mode: config.mode,
    at: Date.now(),
    hasProblems: groups.some(({ findings }) => findings.some(({ severity }) => severity !== 'info')),
    groups,
  };
}

function checksOf(options: DoctorOptions): readonly (readonly [name: string, check: GroupCheck])[] {
  const { config, nodeName, proxy, subject, server, machines } = options;
  const { mode } = config;
  const checks: [string, GroupCheck][] = [];
  if (machines) {
    const { doctor: machine, checks: trials } = machines;
    const families = familiesHere(options.families, machine);
    const settings = preflightSettings(config);
    const { localhostNodePorts } = settings;
    checks.push(
      ['kernel', (group) => checkKernel(group, mode, settings, options.families, trials)],
      [
        'sysctls',
        (group) =>
          checkSysctls(group, machine, {
            families,
            conntrack: config.conntrack,
            localhostNodePorts: mode === 'iptables' && localhostNodePorts,
          }),
      ],
      ['other proxies', (group) => checkOtherProxies(group, machine, mode, nodeName)],
      ['firewall', (group) => checkFirewall(group, machine, families)],
    );
    if (subject) checks.push(['routes', (group) => checkRoutes(group, machine, endpointsOf(subject))]);
    if (proxy) checks.push(['proxy', (group) => checkProxy(group, machine, proxy, config.syncPeriodMs)]);
  }
  const status = proxy?.status;
  if (status) checks.push(['API server', (group) => checkSource(group, status.source, status.now)]);
  if (server) checks.push(['API server, asked directly', (group) => checkServer(group, server)]);
  if (subject)
    checks.push(
      ['rules', (group) => checkRules(group, subject.families, status !== undefined)],
      ['packets', (group) => walkServices(group, subject)],
      ['services', (group) => checkServices(group, subject)],
    );
  else
    checks.push([
      'services',
      (group) => group.notEvaluated('services', options.whyNoServices ?? 'none are known'),
    ]);
  if (subject && options.probe) {
    const { probe: probing } = options;
    checks.push(['probe', (group) => probe(group, subject.families, probing)]);
  }
  return checks;
}

/** Ready ones, in the order of the services. */
function* endpointsOf({ families, nodeName }: Subject): Generator<SampledEndpoint> {
  for (const family of families)
    for (const service of family.services())
      for (const { endpoints, ports } of family.slicesOf(service))
        for (const { ip, nodeName: node, ready } of endpoints)
          if (ready) yield { ip, port: ports[0]?.port ?? 0, service, node, isLocal: node === nodeName };
}
