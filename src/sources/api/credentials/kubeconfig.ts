/** Which cluster and user a kubeconfig's current context means, and the parts of the identity that they give. */
import { dirname, isAbsolute, join } from 'node:path';
import { JunctionError } from '../../../errors.ts';
import { LineIndex } from '../../../text/lines.ts';
import { readYaml } from '../../../text/yaml.ts';
import { execPart, readExecPlugin } from './execPlugin.ts';
import {
  certificatePart,
  type Environment,
  explainFileError,
  FileText,
  type IdentityPart,
  passwordPart,
  type Text,
  tokenPart,
} from './identity.ts';
import { isMap, ownField } from '../../../text/cursor.ts';
import { quote } from '../../../text/printable.ts';

export interface CurrentContext {
  /** `kubeconfig /etc/junction.conf, context "prod"` */
  readonly origin: string;
  readonly cluster: KubeconfigSection;
  readonly user: KubeconfigSection;
  /** '' where it names none. */
  readonly namespace: string;
}

const PATH_HINT = 'Give the path of a kubeconfig that exists (--kubeconfig, or clientConnection.kubeconfig).';
const TILDE_HINT =
  'A shell replaces ~ only at the beginning of a word, and never in a file: --kubeconfig ~/.kube/config or --kubeconfig="$HOME/.kube/config".';
const NO_CONTEXT_HINT =
  'It has no contexts at all: is it the file that you mean? One that `kubectl config view --kubeconfig FILE` shows with a cluster and a user will do.';
const NONE = 'none';

/** With a server given otherwise (`--master`), a kubeconfig need not name a cluster. `chosen`: instead of its current context. */
export async function readKubeconfig(
  path: string,
  needsCluster: boolean,
  environment: Environment,
  chosen = '',
): Promise<CurrentContext> {
  const where = `kubeconfig ${path}`;
  let text: string;
  try {
    text = await environment.readFile(path);
  } catch (error) {
    throw new JunctionError('KUBECONFIG_INVALID', `${where}: ${explainFileError(error)}`, {
      cause: error,
      hint: path.startsWith('~') ? TILDE_HINT : PATH_HINT,
    });
  }
  const file = { path, environment };
  const root = new KubeconfigSection(where, readRoot(text, where), file);
  const empty = new KubeconfigSection(where, {}, file);
  const name = chosen === '' ? root.text('current-context') : chosen;
  if (name === '') {
    if (!needsCluster) return { origin: where, cluster: empty, user: empty, namespace: '' };
    const names = namesOf(root, 'contexts');
    const hint =
      names === NONE ? NO_CONTEXT_HINT : `Choose one with \`kubectl config use-context\`: ${names}.`;
    throw root.bad('current-context', 'is not set', hint);
  }
  const context = named(root, 'context', name, chosen === '' ? 'current-context' : '--context');
  const clusterName = context.text('cluster');
  const userName = context.text('user');
  if (clusterName === '' && needsCluster) throw context.bad('cluster', 'is not set');
  return {
    origin: context.where,
    cluster: clusterName === '' ? empty : named(root, 'cluster', clusterName, context.where),
    // A context without a user is anonymous.
    user: userName === '' ? empty : named(root, 'user', userName, context.where),
    namespace: context.text('namespace'),
  };
}

function readRoot(text: string, where: string): unknown {
  const bad = (offset: number, message: string): JunctionError => {
    const { line } = new LineIndex(text).position(offset);
    return new JunctionError('KUBECONFIG_INVALID', `${where}:${line}: ${message}`);
  };
  const [value] = readYaml(text);
  if (value === undefined) return null;
  // The parser's own message would show the line, and with it perhaps a token.
  if ('message' in value)
    throw bad(value.offset, value.code === undefined ? value.message : `it is not YAML (${value.code})`);
  const [repeated] = value.repeatedKeys;
  if (repeated !== undefined) throw bad(repeated.offset, 'it is not YAML (DUPLICATE_KEY)');
  return value.raw;
}

/** The entry of `clusters`, `users` or `contexts` with this name. */
function named(root: KubeconfigSection, kind: string, name: string, wantedBy: string): KubeconfigSection {
  const entry = root.list(`${kind}s`).find((each) => ownField(each, 'name') === name);
  if (entry === undefined) {
    const hint = `It has: ${namesOf(root, `${kind}s`)}.`;
    throw root.bad(`${kind}s`, `has no ${kind} ${quote(name)}, which ${wantedBy} names`, hint);
  }
  return root.section(`${kind} ${quote(name)}`, ownField(entry, kind));
}

function namesOf(root: KubeconfigSection, listName: string): string {
  const names = root.list(listName).flatMap((each) => {
    const name = ownField(each, 'name');
    return typeof name === 'string' ? quote(name) : [];
  });
  return names.length === 0 ? NONE : names.join(', ');
}

/** One map of a kubeconfig, read field by field, with messages that say where it stands. */
export class KubeconfigSection {
  /** `kubeconfig /etc/junction.conf, user "proxy"` */
  readonly where: string;
  readonly #map: Readonly<Record<string, unknown>>;
  readonly #file: { readonly path: string; readonly environment: Environment };

  constructor(where: string, value: unknown, file: { path: string; environment: Environment }) {
    this.where = where;
    this.#file = file;
    if (value !== undefined && value !== null && !isMap(value)) {
      throw new JunctionError('KUBECONFIG_INVALID', `${where} is ${quote(value)}, not a map`);
    }
    this.#map = isMap(value) ? value : {};
  }

  section(name: string, value: unknown = ownField(this.#map, name)): KubeconfigSection {
    return new KubeconfigSection(`${this.where}, ${name}`, value, this.#file);
  }

  has(field: string): boolean {
    const value = ownField(this.#map, field);
    return value !== undefined && value !== null && value !== '';
  }

  /** '' when it is not there. Values are never shown: some are secrets. */
  text(field: string): string {
    const value = ownField(this.#map, field) ?? '';
    if (typeof value !== 'string') throw this.bad(field, 'is not text');
    return value;
  }

  flag(field: string): boolean {
    const value = ownField(this.#map, field) ?? false;
    if (typeof value !== 'boolean') throw this.bad(field, 'is neither true nor false');
    return value;
  }

  /** `FIELD-data`, which is text in base64, else the file that `FIELD` names. */
  content(field: string): Text | undefined {
    const text = this.text(`${field}-data`).replaceAll(/\s/g, '');
    if (text === '') return this.file(field);
    const bytes = Buffer.from(text, 'base64');
    if (bytes.toString('base64').replace(/=+$/, '') !== text.replace(/=+$/, '')) {
      throw this.bad(`${field}-data`, 'is not base64');
    }
    return bytes.toString('utf8');
  }

  file(field: string): FileText | undefined {
    const path = this.text(field);
    const { environment } = this.#file;
    return path === '' ? undefined : new FileText(this.resolve(path), `${this.where}: ${field}`, environment);
  }

  /** Paths in a kubeconfig are relative to its directory. */
  resolve(path: string): string {
    return isAbsolute(path) ? path : join(dirname(this.#file.path), path);
  }

  list(field: string): readonly unknown[] {
    const value = ownField(this.#map, field) ?? [];
    if (!Array.isArray(value)) throw this.bad(field, 'is not a list');
    return value;
  }

  bad(field: string, what: string, hint?: string): JunctionError {
    return new JunctionError('KUBECONFIG_INVALID', `${this.where}: ${field} ${what}`, { hint });
  }
}

/** Fields that would give Junction another identity, if they were left out silently. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  'auth-provider': 'Use exec with a credential plugin.',
  as: 'Give the credentials of the user that Junction is to be.',
  'as-uid': 'Give the credentials of the user that Junction is to be.',
  'as-groups': 'Give the credentials of the user that Junction is to be.',
};

export function clusterParts(cluster: KubeconfigSection): readonly IdentityPart[] {
  const authority = cluster.content('certificate-authority');
  return authority === undefined ? [] : [certificatePart('ca', authority)];
}

export function userParts(
  { user, cluster }: CurrentContext,
  server: URL,
  environment: Environment,
): readonly IdentityPart[] {
  for (const [field, hint] of Object.entries(UNSUPPORTED)) {
    if (user.has(field)) throw user.bad(field, 'is not supported', hint);
  }
  const parts = [...certificates(user), ...authorization(user)];
  if (user.has('exec'))
    parts.push(execPart(readExecPlugin(user.section('exec'), cluster, server), environment));
  return parts;
}

function certificates(user: KubeconfigSection): readonly IdentityPart[] {
  const certificate = user.content('client-certificate');
  const key = user.content('client-key');
  if (certificate === undefined && key === undefined) return [];
  if (key === undefined) throw user.bad('client-key', 'is not set');
  if (certificate === undefined) throw user.bad('client-certificate', 'is not set');
  return [certificatePart('certificate', certificate), certificatePart('key', key)];
}

function authorization(user: KubeconfigSection): readonly IdentityPart[] {
  const token = user.text('token') || undefined;
  const file = user.file('tokenFile');
  const name = user.text('username');
  const password = user.text('password');
  const hasToken = token !== undefined || file !== undefined;
  if (hasToken && name !== '')
    throw user.bad('username', 'cannot stand beside a token', 'Remove one of them.');
  if (hasToken)
    return [tokenPart(file, token, `${user.where}: ${file === undefined ? 'token' : 'tokenFile'}`)];
  return name === '' ? [] : [passwordPart(name, password)];
}
