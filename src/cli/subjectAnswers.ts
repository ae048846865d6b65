/** Asks a subject in this process: manifests, a cluster, or a bundle. */
import type { Bundle } from '../bundle/read.ts';
import type { ParsedFlags } from '../config/commandLine.ts';
import { explainPackets } from '../explain/packet.ts';
import { parseService } from '../explain/question.ts';
import { endpointRows, serviceRows } from '../explain/rows.ts';
import { explainService } from '../explain/service.ts';
import type { Subject } from '../explain/subject.ts';
import { type Answerer, onlyOf } from './answers.ts';
import { clusterSubject, manifestSubject } from './offlineSubject.ts';
import type { Output } from './output.ts';
import type { QuestionSource } from './questionSource.ts';

export async function subjectAnswers(
  source: Exclude<QuestionSource, { readonly kind: 'live' }>,
  parsed: ParsedFlags,
  output: Output,
): Promise<Answerer> {
  const { subject, bundle } = await openSubject(source, parsed, output);
  return {
    source,
    packets: (question) => explainPackets(subject, question),
    service: async (service) => explainService(subject, parseService(service)),
    services: async (namespace) => [...serviceRows(subject, namespace === '' ? {} : { namespace })],
    endpoints: (service) => endpointRows(subject, service),
    status: async (wait) => {
      if (wait) throw onlyOf('what is applied', source);
      if (bundle?.status) return bundle.status;
      throw onlyOf('the status of a proxy', source);
    },
  };
}

async function openSubject(
  source: Exclude<QuestionSource, { readonly kind: 'live' }>,
  parsed: ParsedFlags,
  output: Output,
): Promise<{
  readonly subject: Subject;
  readonly bundle?: Bundle;
}> {
  if (source.kind === 'bundle') {
    const { openBundle } = await import('./nodeCommands.ts');
    return openBundle(source.file, output);
  }
  const open = source.kind === 'manifests' ? manifestSubject : clusterSubject;
  return { subject: await open(parsed, output) };
}
