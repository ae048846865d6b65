/** Which kubeconfig is meant: that of the flag, those of KUBECONFIG, or the one in the home directory. */
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { parse } from 'yaml';
import { attempt } from '../errors.ts';
import { isMap, ownField, ownText } from '../text/cursor.ts';

interface KubeconfigOptions {
  readonly kubeconfig: string;
  readonly context: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home?: string;
}

/**
 * '' where there is none: then the service account of a pod counts. Of several files, kubectl makes one; here it is the first
 * that has the context, with its cluster and user.
 */
export function kubeconfigPath({ kubeconfig, context, env, home = homedir() }: KubeconfigOptions): string {
  if (kubeconfig !== '') return kubeconfig;
  const named = (env['KUBECONFIG'] ?? '').split(delimiter).filter((path) => path !== '');
  if (named.length === 0) {
    const usual = join(home, '.kube', 'config');
    return existsSync(usual) ? usual : '';
  }
  const files = named.filter((path) => existsSync(path));
  if (files.length < 2) return files[0] ?? named[0] ?? '';
  const contents = files.map((path) => ({
    path,
    raw: attempt((): unknown => parse(readFileSync(path, 'utf8'))),
  }));
  const current =
    contents.map(({ raw }) => ownText(raw, 'current-context')).find((name) => name !== '') ?? '';
  const wanted = context === '' ? current : context;
  return contents.find(({ raw }) => hasContext(raw, wanted))?.path ?? files[0] ?? '';
}

function hasContext(raw: unknown, name: string): boolean {
  const contexts = ownField(raw, 'contexts');
  return Array.isArray(contexts) && contexts.some((each) => isMap(each) && each['name'] === name);
}
