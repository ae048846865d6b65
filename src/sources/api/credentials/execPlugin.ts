/** Credentials from a program: `exec` in a kubeconfig (client.authentication.k8s.io). */
import { JunctionError } from '../../../errors.ts';
import { bearer, type Environment, type Identity, type IdentityPart } from './identity.ts';
import type { KubeconfigSection } from './kubeconfig.ts';
import { isMap, ownField, ownText } from '../../../text/cursor.ts';
import { quote } from '../../../text/printable.ts';

const VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];
/** A credential that ends while its request is on the way is refused. */
const EARLY_MS = 5000;
const SHOWN_OUTPUT = 300;

type ExecPlugin = ReturnType<typeof readExecPlugin>;

export function readExecPlugin(exec: KubeconfigSection, cluster: KubeconfigSection, server: URL) {
  const apiVersion = exec.text('apiVersion');
  if (!VERSIONS.includes(apiVersion)) {
    throw exec.bad('apiVersion', `${quote(apiVersion)} is not known`, `Use ${VERSIONS.join(' or ')}.`);
  }
  const command = exec.text('command');
  if (command === '') throw exec.bad('command', 'is not set');
  if (exec.text('interactiveMode') === 'Always') {
    throw exec.bad(
      'interactiveMode',
      'is Always, but nobody sits at the terminal of a node',
      'Set it to Never.',
    );
  }
  return {
    where: exec.where,
    apiVersion,
    // As kubectl does: a bare name is looked up on the PATH, anything with a slash is a path.
    command: command.includes('/') ? exec.resolve(command) : command,
    args: exec.list('args').map((arg) => {
      if (typeof arg !== 'string') throw exec.bad('args', 'has an item that is not text');
      return arg;
    }),
    env: Object.fromEntries(exec.list('env').map((entry) => readVariable(exec, entry))),
    installHint: exec.text('installHint').trim() || undefined,
    // What KUBERNETES_EXEC_INFO says about the cluster, when the plugin wants to know.
    cluster: exec.flag('provideClusterInfo') ? clusterInfo(cluster, server) : undefined,
  };
}

const CLUSTER_INFO = [
  'tls-server-name',
  'insecure-skip-tls-verify',
  'certificate-authority-data',
  'proxy-url',
] as const;

function clusterInfo(cluster: KubeconfigSection, server: URL): Readonly<Record<string, unknown>> {
  const valueOf = (field: (typeof CLUSTER_INFO)[number]): string | boolean =>
    field === 'insecure-skip-tls-verify' ? cluster.flag(field) : cluster.text(field);
  const given = CLUSTER_INFO.map((field) => [field, valueOf(field)] as const).filter(([, value]) => value);
  return { server: server.href.replace(/\/$/, ''), ...Object.fromEntries(given) };
}

function readVariable(exec: KubeconfigSection, entry: unknown): readonly [string, string] {
  const name = ownField(entry, 'name');
  const value = ownField(entry, 'value') ?? '';
  if (typeof name === 'string' && name !== '' && typeof value === 'string') return [name, value];
  throw exec.bad('env', 'has an item without a name and a value in text');
}

type Credential = ReturnType<typeof readCredential>;

/** Runs the plugin when there is no credential, or it ends, or the server did not take it. */
export function execPart(plugin: ExecPlugin, environment: Environment): IdentityPart {
  let credential: Credential | undefined;
  let running: Promise<Credential> | undefined;
  return {
    current: async () => {
      if (credential && environment.wallTime() < credential.expiresAt - EARLY_MS) return credential.identity;
      running ??= obtain(plugin, environment).finally(() => {
        running = undefined;
      });
      credential = await running;
      environment.onPluginCertificate?.(credential.identity.certificate);
      return credential.identity;
    },
    renew: () => {
      credential = undefined;
      return true;
    },
  };
}

async function obtain(plugin: ExecPlugin, environment: Environment): Promise<Credential> {
  const { where, apiVersion, command, args, cluster, installHint } = plugin;
  const spec = { ...(cluster && { cluster }), interactive: false };
  const info = JSON.stringify({ apiVersion, kind: 'ExecCredential', spec });
  const env = { ...environment.env, ...plugin.env, KUBERNETES_EXEC_INFO: info };
  const result = await environment.runPlugin({ command, args, env });
  if (result.kind === 'failed') {
    const reason = result.isMissing ? 'there is no such program' : result.reason;
    const hint = result.isMissing ? installHint : undefined;
    const message = `${where}: cannot run ${quote(command)}: ${reason}`;
    throw new JunctionError('CREDENTIALS_UNAVAILABLE', message, { hint });
  }
  if (result.code !== 0) {
    const message = `${where}: ${quote(command)} failed with status ${result.code}`;
    const detail = result.stderr.slice(0, SHOWN_OUTPUT);
    throw new JunctionError('CREDENTIALS_UNAVAILABLE', message, { hint: installHint, detail });
  }
  return readCredential(plugin, result.stdout);
}

function readCredential({ where, apiVersion, command }: ExecPlugin, stdout: string) {
  const what = `${where}: the output of ${quote(command)}`;
  let raw: unknown;
  try {
    raw = JSON.parse(stdout);
  } catch {
    throw unusable(`${what} is not JSON`); // without the parser's message: it shows the text, which may hold a token
  }
  if (ownField(raw, 'kind') !== 'ExecCredential' || ownField(raw, 'apiVersion') !== apiVersion) {
    throw unusable(`${what} is not an ExecCredential of ${apiVersion}`);
  }
  const status = ownField(raw, 'status');
  if (!isMap(status)) throw unusable(`${what} has no status`);
  const text = (field: string): string | undefined => ownText(status, field) || undefined;
  const token = text('token');
  const certificate = text('clientCertificateData');
  const key = text('clientKeyData');
  if (token === undefined && certificate === undefined)
    throw unusable(`${what} has neither a token nor a certificate`);
  if ((certificate === undefined) !== (key === undefined)) {
    throw unusable(`${what} has only one of clientCertificateData and clientKeyData`);
  }
  const expiry = text('expirationTimestamp');
  const expiresAt = expiry === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiry);
  if (Number.isNaN(expiresAt)) throw unusable(`${what} has an expirationTimestamp that is not a time`);
  const identity: Identity = {
    ...(token !== undefined && { authorization: bearer(token, `${what}: the token`) }),
    ...(certificate !== undefined && { certificate, key }),
  };
  return { expiresAt, identity };
}

function unusable(message: string): JunctionError {
  return new JunctionError('CREDENTIALS_UNAVAILABLE', message, {
    hint: 'Run the plugin by hand, with KUBERNETES_EXEC_INFO set, and look at what it prints.',
  });
}
