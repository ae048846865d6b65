/** What commands ask, of whatever can answer: the running proxy, or a subject in this process. */
import type { ParsedFlags } from '../config/commandLine.ts';
import type { PacketQuestion } from '../explain/packet.ts';
import type { Status } from '../explain/status.ts';
import type { EndpointRow, PacketExplanation, ServiceExplanation, ServiceRow } from '../explain/types.ts';
import type { ObjectKey } from '../model/objects.ts';
import { UsageError } from './commands.ts';
import { liveAnswers } from './liveAnswers.ts';
import type { Output } from './output.ts';
import { type QuestionSource, questionSource } from './questionSource.ts';

export interface AskedWait {
  readonly timeoutMs: number;
  /** `shop/web`; unset: none in particular. */
  readonly service?: ObjectKey | undefined;
  readonly resourceVersion?: string | undefined;
}

export interface Answerer {
  readonly source: QuestionSource;
  packets(question: PacketQuestion): Promise<readonly PacketExplanation[]>;
  /** `shop/web`, `shop/web:http` */
  service(service: string): Promise<ServiceExplanation>;
  /** Of one namespace, or all. */
  services(namespace: string): Promise<readonly ServiceRow[]>;
  endpoints(service: ObjectKey): Promise<readonly EndpointRow[]>;
  /** At once or, where it is asked to wait, when everything is applied or the time is over. */
  status(wait?: AskedWait): Promise<Status>;
}

/** Only what the source needs is loaded. */
export async function openAnswers(parsed: ParsedFlags, output: Output): Promise<Answerer> {
  const source = await questionSource(parsed);
  if (source.kind === 'live') return liveAnswers(source);
  const { subjectAnswers } = await import('./planningCommands.ts');
  return subjectAnswers(source, parsed, output);
}

/** Manifests and clusters have no proxy that could say how it is. */
export function onlyOf(what: string, { kind }: QuestionSource): UsageError {
  return new UsageError(
    [`${what} is known to a running proxy only, and the source is --${kind}`],
    'ask the running proxy: leave the source out, or name its socket with --api-socket',
  );
}
