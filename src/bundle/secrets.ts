/**
 * What no bundle may hold: a file that is sent to others, and kept. Two nets: the shapes that credentials have, and the
 * very values that this machine has for its API server.
 */
import { isMap } from '../text/cursor.ts';
import { attempt } from '../errors.ts';
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'yaml';

export const REMOVED = '[removed]';

const CREDENTIAL = String.raw`(?:[\w-]*(?:password|passwd|secret|token|api[_-]?key|key-data))`;

/** In text of JSON: none of them crosses the end of a string. */
const SHAPES: readonly (readonly [RegExp, string])[] = [
  // https://user:password@host
  [/([a-z][a-z0-9+.-]*:\/\/)[^\s"\\/@]+@/gi, `$1${REMOVED}@`],
  [/\b(Bearer|Basic)(\s+)[A-Za-z0-9+/._~-]{6,}=*/gi, `$1$2${REMOVED}`],
  // A JSON web token: service-account tokens are.
  [/\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*/g, REMOVED],
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^"\\-]|\\.)*(?:-----END [A-Z ]*PRIVATE KEY-----)?/g, REMOVED],
  // The same in base64: client-key-data.
  [/\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{16,}=*/g, REMOVED],
  // password=…, "token": "…", --token …
  [
    new RegExp(
      String.raw`(\b${CREDENTIAL}\\?["']?\s*[:=]\s*\\?["']?|--${CREDENTIAL}\s+)(?!\[removed\])[^\s"'\\,}&]{4,}`,
      'gi',
    ),
    `$1${REMOVED}`,
  ],
];

/** Shorter than this, a value is likelier a word that stands elsewhere too. */
const SHORTEST = 6;

export class SecretFilter {
  readonly #known: RegExp | undefined;

  /** `values`: credentials of this machine. */
  constructor(values: Iterable<string>) {
    const texts = new Set<string>();
    for (const value of values) {
      const trimmed = value.trim();
      if (trimmed.length < SHORTEST) continue;
      for (const form of [trimmed, encodeURIComponent(trimmed), Buffer.from(trimmed).toString('base64')])
        texts.add(JSON.stringify(form).slice(1, -1));
    }
    const longestFirst = [...texts].sort((a, b) => b.length - a.length);
    if (longestFirst.length > 0) this.#known = new RegExp(longestFirst.map(escaped).join('|'), 'g');
  }

  /** JSON in, JSON out. */
  clean(json: string): string {
    const shaped = SHAPES.reduce((text, [shape, instead]) => text.replace(shape, instead), json);
    return this.#known === undefined ? shaped : shaped.replace(this.#known, REMOVED);
  }
}

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}/-]/g, String.raw`\$&`);
}

/** Fields of a kubeconfig's users, and of their auth-providers, that are credentials. */
const SECRET_FIELD = /token|password|secret|key-data/i;
const SECRET_FILE = /^(?:tokenFile|client-key)$/;
const SECRET_VARIABLE = /TOKEN|SECRET|PASSW|API_?KEY|CREDENTIAL|PRIVATE/i;
const PROXY_VARIABLE = /^(?:https?|all|no)_proxy$/i;

interface SecretSources {
  /** Of a kubeconfig; empty where there is none. */
  readonly kubeconfig: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

const POD_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** What cannot be read holds no secret that could be found here. */
export async function knownSecrets(sources: SecretSources): Promise<readonly string[]> {
  const { kubeconfig, env } = sources;
  const found: string[] = [];
  for (const [name, value = ''] of Object.entries(env)) {
    if (SECRET_VARIABLE.test(name)) found.push(value);
    if (PROXY_VARIABLE.test(name)) found.push(...ofUrl(value));
  }
  found.push(await textOf(POD_TOKEN));
  if (kubeconfig === '') return found;
  const directory = dirname(resolve(kubeconfig));
  const text = await textOf(kubeconfig);
  const root: unknown = attempt(() => parse(text, { logLevel: 'silent' }));
  const files: string[] = [];
  visit(root, '', (field, value) => {
    if (SECRET_FILE.test(field)) files.push(resolve(directory, value));
    else if (SECRET_FIELD.test(field)) found.push(value, decoded(field, value));
    else found.push(...ofUrl(value));
  });
  for (const { env: variables, args } of execSections(root)) found.push(...variables, ...args);
  for (const file of files) found.push(await textOf(file));
  return found;
}

async function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch(() => '');
}

function decoded(field: string, value: string): string {
  return field.endsWith('-data') ? Buffer.from(value, 'base64').toString('utf8') : '';
}

/** The password, and the user's name with it. */
function ofUrl(text: string): readonly string[] {
  const url = attempt(() => new URL(text));
  if (!url || (url.password === '' && url.username === '')) return [];
  return [url.password, decodeURIComponent(url.password), `${url.username}:${url.password}`];
}

/** Every text with the name of its field. */
function visit(value: unknown, field: string, found: (field: string, text: string) => void, depth = 0): void {
  if (depth > DEEPEST) return;
  if (typeof value === 'string') found(field, value);
  else if (Array.isArray(value)) for (const item of value) visit(item, field, found, depth + 1);
  else if (isMap(value))
    for (const [name, inner] of Object.entries(value)) visit(inner, name, found, depth + 1);
}

const DEEPEST = 20;

/** A plugin gets its credentials by variables, and sometimes by arguments. */
function execSections(
  root: unknown,
): readonly { readonly env: readonly string[]; readonly args: readonly string[] }[] {
  const users = isMap(root) && Array.isArray(root['users']) ? (root['users'] as readonly unknown[]) : [];
  return users.flatMap((entry) => {
    const user = isMap(entry) ? entry['user'] : undefined;
    const exec = isMap(user) ? user['exec'] : undefined;
    if (!isMap(exec)) return [];
    const env: string[] = [];
    visit(exec['env'], '', (field, text) => {
      if (field === 'value') env.push(text);
    });
    const args: string[] = [];
    visit(exec['args'], '', (_, text) => {
      // Plain words, such as get-token, stand elsewhere too.
      const value = text.replace(/^-[^=]*=/, '');
      if (!/^-*[a-z-]+$/.test(value)) args.push(value);
    });
    return [{ env, args }];
  });
}
