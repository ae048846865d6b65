/** Where a question is answered from: the running proxy, or something that is read for it. */
import { flagValue, type ParsedFlags } from '../config/commandLine.ts';
import { FLAGS } from '../config/table.ts';
import { UsageError } from './commands.ts';
import { OWN_FLAGS } from './ownFlags.ts';

export type QuestionSource =
  | { readonly kind: 'live'; readonly socket: string }
  | { readonly kind: 'bundle'; readonly file: string }
  | { readonly kind: 'manifests' | 'kubeconfig' };

/** Without a flag that names one, the running proxy. */
export async function questionSource(parsed: ParsedFlags): Promise<QuestionSource> {
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
      return { kind: 'live', socket: await socketOf(parsed) };
  }
}

/** From the flag; a configuration file is only read where one is named. */
export async function socketOf(parsed: ParsedFlags): Promise<string> {
  const socket = parsed.values.has('config') ? await configuredSocket(parsed) : flagSocket(parsed);
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

async function configuredSocket(parsed: ParsedFlags): Promise<string> {
  const { loadValid } = await import('./planningCommands.ts');
  return loadValid(parsed).config.junction.apiSocket;
}
