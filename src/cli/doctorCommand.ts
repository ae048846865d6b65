/** `junction doctor`: what on this node keeps services from working. Exit code 1 when it finds a problem. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import type { ValidConfig } from '../config/effective.ts';
import { type Settings, toSettings } from '../config/settings.ts';
import { askServer } from '../doctor/askServer.ts';
import { doctor } from '../doctor/doctor.ts';
import { doctorMachine } from '../doctor/machine.ts';
import type { ProxyLook } from '../doctor/proxy.ts';
import { DOCTOR_GROUPS, type DoctorReport } from '../explain/doctorReport.ts';
import { isJunctionError, messageOf } from '../errors.ts';
import type { Status } from '../explain/status.ts';
import type { SnapshotHeader } from '../explain/snapshot.ts';
import type { FamilySubject, Subject } from '../explain/subject.ts';
import type { Family } from '../model/ip.ts';
import { type OpenReader, openReader } from '../modes/openReader.ts';
import { hasCapability, readProcessStatus } from '../modes/prerequisites/check.ts';
import { systemMachine } from '../modes/prerequisites/machine.ts';
import { didYouMean } from '../text/suggest.ts';
import { findHolder } from '../system/instanceLock.ts';
import { showAnswer } from './answerOutput.ts';
import { UsageError } from './commands.ts';
import { OWN_FLAGS } from './ownFlags.ts';
import { openBundle } from './bundleSubject.ts';
import { loadValid, nodeName } from './configuration.ts';
import { printDoctor } from './doctorOutput.ts';
import { askJson } from './localApi.ts';
import { clusterSubject, manifestSubject } from './offlineSubject.ts';
import type { Output } from './output.ts';
import { type QuestionSource, questionSource, socketOf } from './questionSource.ts';
import {
  liveHeader,
  liveSnapshot,
  snapshotConfig,
  snapshotSettings,
  snapshotSubject,
} from './snapshotSubject.ts';

/** What is asked about. */
interface Patient {
  readonly config: ValidConfig;
  readonly settings: Settings;
  readonly proxy?: ProxyLook;
  readonly subject?: Subject;
  readonly whyNoServices?: string;
  readonly isThisMachine: boolean;
}

export async function doctorCommand(
  parsed: ParsedFlags,
  output: Output,
  families: readonly Family[],
): Promise<number> {
  return showAnswer(parsed, output, async () => {
    const report = await doctorReport(parsed, output, families);
    return {
      answer: report,
      exitCode: report.hasProblems ? 1 : 0,
      text: ({ paint, columns, isWide }) => [printDoctor(report, paint, { columns, isWide })],
    };
  });
}

export async function doctorReport(
  parsed: ParsedFlags,
  output: Output,
  families: readonly Family[],
  only = groupsAsked(parsed),
): Promise<DoctorReport> {
  const source = await questionSource(parsed);
  const patient = await openPatient(parsed, source, output, only);
  const { config, settings, proxy, subject, isThisMachine, whyNoServices } = patient;
  const readers: OpenReader[] = [];
  try {
    const mayLook = isThisMachine && hasCapability(readProcessStatus(), 'NET_ADMIN');
    const isServerMeant = only === undefined || only.includes('api-server');
    const asksServer = isServerMeant && (config.clientConnection.kubeconfig !== '' || config.master !== '');
    const { arguments: names } = parsed;
    return await doctor({
      config,
      nodeName: settings.nodeName,
      families,
      proxy,
      subject: subject && mayLook ? await withKernel(subject, settings, families, readers) : subject,
      whyNoServices,
      server: asksServer && source.kind !== 'bundle' ? await askServer(config) : undefined,
      service: names[0],
      only,
      probe: flagValue(parsed, OWN_FLAGS.probe) ? { service: names[0], limitMs: PROBE_LIMIT_MS } : undefined,
      machines: mayLook
        ? { doctor: doctorMachine(config.junction.sysctlRoot), checks: systemMachine(config.junction) }
        : undefined,
    });
  } finally {
    for (const reader of readers) await reader.close();
  }
}

const PROBE_LIMIT_MS = 3000;

function groupsAsked(parsed: ParsedFlags): readonly string[] | undefined {
  const names = flagValue(parsed, OWN_FLAGS.only)
    .split(',')
    .filter((name) => name !== '');
  const known: readonly string[] = DOCTOR_GROUPS;
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new UsageError(
      unknown.map((name) => `--only: no group ${JSON.stringify(name)}${didYouMean(name, known)}`),
    );
  return names.length === 0 ? undefined : names;
}

/** Groups that look at services. Without them, a running proxy is not asked for all that it has. */
const OF_SERVICES: ReadonlySet<string> = new Set(['routes', 'rules', 'packets', 'services', 'probe']);

async function openPatient(
  parsed: ParsedFlags,
  source: QuestionSource,
  output: Output,
  only: readonly string[] | undefined,
): Promise<Patient> {
  const needsServices = only === undefined || only.some((name) => OF_SERVICES.has(name));
  if (source.kind === 'live') return livePatient(parsed, source.socket, needsServices);
  if (source.kind === 'bundle') {
    const { bundle, subject } = await openBundle(source.file, output);
    const settings = snapshotSettings(bundle.header);
    return { config: snapshotConfig(bundle.header), settings, subject, isThisMachine: false };
  }
  const { config } = loadValid(parsed);
  const settings = toSettings(config, nodeName(config));
  const subject = await (source.kind === 'manifests' ? manifestSubject : clusterSubject)(parsed, output);
  return { config, settings, subject, proxy: await lookAtProxy(await socketOf(parsed)), isThisMachine: true };
}

/** Where no proxy answers, the command line says what is meant. */
async function livePatient(parsed: ParsedFlags, socket: string, needsServices: boolean): Promise<Patient> {
  const proxy = await lookAtProxy(socket);
  const { status } = proxy;
  if (!status) {
    const { config } = loadValid(parsed);
    const whyNoServices = 'no proxy answers; --manifests or --kubeconfig name another source';
    const settings = toSettings(config, nodeName(config));
    return { config, settings, proxy, whyNoServices, isThisMachine: true };
  }
  const known = (header: SnapshotHeader): Patient => ({
    config: snapshotConfig(header),
    settings: snapshotSettings(header),
    proxy,
    isThisMachine: true,
  });
  try {
    if (!needsServices) return known(await liveHeader(socket));
    const snapshot = await liveSnapshot(socket);
    return { ...known(snapshot.header), subject: snapshotSubject(snapshot) };
  } catch (error) {
    if (!isJunctionError(error)) throw error;
    const config = { ...loadValid(parsed).config, mode: status.mode };
    const settings = toSettings(config, status.node);
    return { config, settings, proxy, whyNoServices: error.message, isThisMachine: true };
  }
}

/** One that is stopped does not answer; its socket is there all the same. */
const STATUS_LIMIT_MS = 5000;

async function lookAtProxy(socket: string): Promise<ProxyLook> {
  const holder = (await findHolder())?.text;
  try {
    const status = await askJson<Status>(socket, '/v1/status', { timeoutMs: STATUS_LIMIT_MS });
    return { socket, holder, status };
  } catch (error) {
    return { socket, holder, whyNoStatus: messageOf(error) };
  }
}

async function withKernel(
  subject: Subject,
  settings: Settings,
  families: readonly Family[],
  readers: OpenReader[],
): Promise<Subject> {
  const withReader = async (family: FamilySubject): Promise<FamilySubject> => {
    const kernel = await openReader(family.family, settings).catch((error: unknown) => {
      // Its program is missing, which is a finding of its own.
      if (isJunctionError(error)) return undefined;
      throw error;
    });
    if (kernel) readers.push(kernel);
    return kernel ? { ...family, kernel } : family;
  };
  const asked = subject.families.filter(({ family }) => families.includes(family));
  return { ...subject, families: await Promise.all(asked.map(withReader)) };
}
