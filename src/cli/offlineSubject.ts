/** What questions are answered from without a running proxy: manifests, or what an API server has now, planned in this process. */
import type { ParsedFlags } from '../config/commandLine.ts';
import type { ValidConfig } from '../config/effective.ts';
import type { Settings } from '../config/settings.ts';
import { JunctionError } from '../errors.ts';
import type { FamilySubject, Subject, UnservedService } from '../explain/subject.ts';
import { unservedInFiles } from '../explain/unserved.ts';
import { FAMILIES, type Family, familyOf } from '../model/ip.ts';
import type { ObjectKey } from '../model/objects.ts';
import { printableLine } from '../text/printable.ts';
import { loadValid, nodeSettings } from './configuration.ts';
import type { Output } from './output.ts';
import {
  isNothing,
  nodeNote,
  nodeOf,
  pathNames,
  planFamily,
  type PlanInput,
  printProblems,
  readManifests,
} from './planInput.ts';

export async function manifestSubject(parsed: ParsedFlags, output: Output): Promise<Subject> {
  const { config } = loadValid(parsed);
  const settings = nodeSettings(config);
  const input = { ...(await readManifests(config, output)), isCluster: false, serviceCidrs: [] };
  printProblems(input, output, 'problems');
  const hasErrors = input.problems.some(({ severity }) => severity === 'error');
  if (isNothing(input)) {
    const what = `no Service, EndpointSlice, Endpoints or Node in ${pathNames(config)}`;
    throw new JunctionError('MANIFESTS_UNREADABLE', hasErrors ? `${what} that can be used` : what, {
      hint: 'Name files or directories that have some; - is standard input.',
    });
  }
  return subjectOf(settings, input, output, (service) => Promise.resolve(unservedInFiles(input, service)));
}

export async function clusterSubject(parsed: ParsedFlags, output: Output): Promise<Subject> {
  const { readCluster, readOneService } = await import('./clusterInput.ts');
  const config = withKubeconfigFlag(loadValid(parsed).config, parsed);
  const settings = nodeSettings(config);
  const input = await readCluster(config, settings.nodeName, output);
  printProblems(input, output, 'problems');
  return subjectOf(
    settings,
    input,
    output,
    async (service) => unservedInFiles(input, service) ?? (await readOneService(config, service)),
  );
}

/** For kube-proxy a file replaces this flag; here it says where to look. */
export function withKubeconfigFlag(config: ValidConfig, { values }: ParsedFlags): ValidConfig {
  const kubeconfig = values.get('kubeconfig');
  if (typeof kubeconfig !== 'string') return config;
  return { ...config, clientConnection: { ...config.clientConnection, kubeconfig } };
}

function subjectOf(
  settings: Settings,
  input: PlanInput,
  output: Output,
  unserved: (service: ObjectKey) => Promise<UnservedService | undefined>,
): Subject {
  const { nodeName, mode, layout } = settings;
  const note = nodeNote(input, settings);
  if (note !== undefined) output.err(`${printableLine(note)}\n`);
  return {
    nodeName,
    mode,
    layout,
    families: FAMILIES.map((family) => familySubject(family, settings, input)),
    now: () => Date.now(),
    detectLocal: settings.detectLocal.mode,
    serviceCidrs: input.serviceCidrs,
    locate: (object) => input.places.get(object),
    unserved,
  };
}

function familySubject(family: Family, settings: Settings, input: PlanInput): FamilySubject {
  const { plan, inputs } = planFamily(family, settings, input);
  const addresses = (nodeOf(input.nodes, settings.nodeName)?.ips ?? []).filter(
    (ip) => familyOf(ip) === family,
  );
  return { family, plan, host: { addresses }, refused: new Map(), ...inputs };
}
