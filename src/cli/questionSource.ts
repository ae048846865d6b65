/** Where a question is answered from: the running proxy, or something that is read for it. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { FLAGS } from '../config/table.ts';
import { OWN_FLAGS, UsageError } from './commands.ts';

export type QuestionSource =
  | { readonly kind: 'live'; readonly socket: string }
  | { readonly kind: 'bundle'; readonly file: string }
  | { readonly kind: 'manifests' | 'kubeconfig' };

/** Without a flag that names one, the running proxy. */
export function questionSource(parsed: ParsedFlags): QuestionSource {
  const has = (name: string): boolean => parsed.values.has(name);
  const bundle = flagValue(parsed, OWN_FLAGS.bundle);
  const named = [
    ...(flagValue(parsed, OWN_FLAGS.live) ? ['--live'] : []),
    ...(has('manifests') ? ['--manifests'] : []),
    ...(has('kubeconfig') || has('master') ? ['--kubeconfig'] : []),
    ...(bundle === '' ? [] : ['--bundle']),
  ];
  if (named.length > 1)
    throw new UsageError([`${named.join(' and ')} are ${named.length} sources: name one of them`]);
  switch (named[0]) {
    case '--manifests':
      return { kind: 'manifests' };
    case '--kubeconfig':
      return { kind: 'kubeconfig' };
    case '--bundle':
      return { kind: 'bundle', file: bundle };
    default:
      return { kind: 'live', socket: socketOf(parsed) };
  }
}

export function socketOf(parsed: ParsedFlags): string {
  const socket = flagSocket(parsed);
  if (socket !== '') return socket;
  throw new UsageError(
    ['--api-socket is empty, so there is no running proxy to ask'],
    'name its socket, or another source: --manifests, --kubeconfig or --bundle',
  );
}

function flagSocket(parsed: ParsedFlags): string {
  const flag = FLAGS.find(({ name }) => name === 'api-socket');
  const value = flag && flagValue(parsed, flag);
  return typeof value === 'string' ? value : '';
}
