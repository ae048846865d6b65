/**
 * How to reach the API server, with which identity. Its parts are texts of the kubeconfig, files that are replaced, and the
 * machine's authorities; here is their check too.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { errorCode, JunctionError } from '../../../errors.ts';
import type { PluginCall, PluginResult } from '../../../system/pluginProcess.ts';
import type { Clock } from '../../../time/clock.ts';

export interface ApiAccess {
  /** Where this was read, for messages: `kubeconfig /etc/junction.conf, context prod`. */
  readonly origin: string;
  readonly server: URL;
  /** Of the kubeconfig's context, for who asks on a person's behalf. */
  readonly namespace?: string;
  /** Its host and port as they were written, for metrics; client-go shows them so. */
  readonly host?: string;
  /** insecure-skip-tls-verify */
  readonly insecure?: boolean;
  /** The name that the server's certificate must have, when it is not the one in the URL. */
  readonly serverName?: string | undefined;
  readonly proxy?: URL | undefined;
  /** As it is now: files are read again from time to time, plugins run when their credential expires. */
  identity(): Promise<Identity>;
  /** The server did not take the identity: the next one is read afresh. False: there is nothing to read again. */
  renew(): Promise<boolean>;
}

/** Texts in PEM, and the value of the Authorization header. Never printed. */
export interface Identity {
  readonly authorization?: string | undefined;
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** Starts a credential plugin. It must come to an end, whatever the plugin does. */
type PluginRunner = (call: PluginCall) => Promise<PluginResult>;

/** What credentials need of the machine. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  readonly runPlugin: PluginRunner;
  /** The client certificate that a plugin gave, in PEM; `undefined`: a token alone. */
  readonly onPluginCertificate?: ((pem: string | undefined) => void) | undefined;
}

export interface IdentityPart {
  current(): Promise<Identity>;
  /** What is known is no good any more. False: nothing else can be had. */
  renew(): boolean;
}

/** A text from the kubeconfig itself, or from a file beside it. */
export type Text = string | FileText;

export function certificatePart(field: 'ca' | 'certificate' | 'key', text: Text): IdentityPart {
  return part([text], async () => ({ [field]: await read(text) }));
}

/** The file counts; the token beside it steps in while the file cannot be read. */
export function tokenPart(
  file: FileText | undefined,
  token: string | undefined,
  where: string,
): IdentityPart {
  const texts = [file, token].filter((text) => text !== undefined);
  return part(texts, async () => {
    try {
      return { authorization: bearer(await read(file ?? token ?? ''), where) };
    } catch (error) {
      if (file === undefined || token === undefined) throw error;
      return { authorization: bearer(token, where) };
    }
  });
}

export function passwordPart(user: string, password: string): IdentityPart {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return part([], async () => ({ authorization }));
}

/** What a header may hold. A token with a line break inside is a wrong file, and would make a broken request. */
const TOKEN = /^[\x21-\x7e]+$/;

export function bearer(token: string, where: string): string {
  const trimmed = token.trim();
  if (TOKEN.test(trimmed)) return `Bearer ${trimmed}`;
  throw new JunctionError('CREDENTIALS_UNAVAILABLE', `${where} has characters that no token has`, {
    hint: 'Put the bare token there: one line, without quotes.',
  });
}

function part(texts: readonly Text[], current: IdentityPart['current']): IdentityPart {
  const files = texts.filter((text) => typeof text !== 'string');
  return {
    current,
    renew: () => {
      for (const file of files) file.expire();
      return files.length > 0;
    },
  };
}

async function read(text: Text): Promise<string> {
  return typeof text === 'string' ? text : text.read();
}

/** The kubelet writes a new token long before the old one ends; a minute late is early enough. */
const FRESH_MS = 60_000;

/** A file that is replaced now and then: a token, a certificate. */
export class FileText {
  readonly path: string;
  readonly #what: string;
  readonly #environment: Environment;
  #last: { readonly text: string; readonly readAt: number } | undefined;
  #isStale = false;

  /** `what` is for messages: `kubeconfig /etc/junction.conf, user "proxy": tokenFile`. */
  constructor(path: string, what: string, environment: Environment) {
    this.path = path;
    this.#what = what;
    this.#environment = environment;
  }

  async read(): Promise<string> {
    const { clock, readFile } = this.#environment;
    const last = this.#last;
    if (last !== undefined && !this.#isStale && clock.now() - last.readAt < FRESH_MS) return last.text;
    try {
      const text = await readFile(this.path);
      if (text.trim() === '') throw new Error('it is empty');
      this.#last = { text, readAt: clock.now() };
      this.#isStale = false;
      return text;
    } catch (error) {
      // In the middle of being replaced, perhaps; what was good a minute ago may still be.
      if (last !== undefined) return last.text;
      const message = `${this.#what}: cannot read ${this.path}: ${explainFileError(error)}`;
      throw new JunctionError('CREDENTIALS_UNAVAILABLE', message, { cause: error });
    }
  }

  /** The next read goes to the disk. */
  expire(): void {
    this.#isStale = true;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'it may not be read',
  EISDIR: 'it is a directory',
  ENOTDIR: 'a part of the path is not a directory',
};

/** Why a file could not be read, in words. */
export function explainFileError(error: unknown): string {
  const code = errorCode(error) ?? '';
  return REASONS[code] ?? (code === '' ? String(error) : code);
}

/** Debian, Fedora, SUSE, Alpine. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

/** What to trust when nothing says it: the machine's own authorities, as kubectl does. Node.js would trust its own. */
export function systemRootsPart({ env, readFile }: Environment): IdentityPart {
  const given = env['SSL_CERT_FILE'] ?? '';
  let bundle: Promise<string | undefined> | undefined;
  const find = async (): Promise<string | undefined> => {
    for (const path of given === '' ? BUNDLES : [given]) {
      const text = await readFile(path).catch(() => '');
      if (text.includes('BEGIN CERTIFICATE')) return text;
    }
    return undefined;
  };
  return {
    current: async () => ({ ca: await (bundle ??= find()) }),
    renew: () => false,
  };
}

/** Finds before the handshake what a handshake would only hint at. */
export function checkIdentity({ ca, certificate, key }: Identity, origin: string, wallTime: number): void {
  const parseCertificate = (pem: string, what: string): X509Certificate =>
    parsed(() => new X509Certificate(pem), `${origin}: ${what} is not a certificate in PEM`);
  const unusable = (message: string, hint?: string): JunctionError =>
    new JunctionError('CREDENTIALS_UNAVAILABLE', `${origin}: ${message}`, { hint });
  if (ca !== undefined) parseCertificate(ca, 'the certificate authority');
  // A kubeconfig and a plugin give both or neither.
  if (certificate === undefined || key === undefined) return;
  const client = parseCertificate(certificate, 'the client certificate');
  const badKey = `${origin}: the client key is not a private key in PEM without a password`;
  if (!client.checkPrivateKey(parsed(() => createPrivateKey(key), badKey))) {
    throw unusable('the client key does not belong to the client certificate');
  }
  if (Date.parse(client.validTo) < wallTime) {
    const hint = 'Renew the certificate, or check the clock of this machine.';
    throw unusable(`the client certificate expired on ${client.validTo}`, hint);
  }
}

function parsed<T>(parse: () => T, otherwise: string): T {
  try {
    return parse();
  } catch (cause) {
    throw new JunctionError('CREDENTIALS_UNAVAILABLE', otherwise, { cause });
  }
}
