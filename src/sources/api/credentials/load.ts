/** Finds out how to reach the API server: from a kubeconfig, from inside a cluster, or from an address alone. */
import { readFile as readFileFromDisk } from 'node:fs/promises';
import { JunctionError } from '../../../errors.ts';
import {
  type ApiAccess,
  certificatePart,
  checkIdentity,
  type Environment,
  FileText,
  type Identity,
  type IdentityPart,
  systemRootsPart,
  tokenPart,
} from './identity.ts';
import { clusterParts, type CurrentContext, readKubeconfig, userParts } from './kubeconfig.ts';
import { hostAndPort, proxyFromEnvironment, readProxy, readServer, writtenHost } from './server.ts';

export interface LoadAccessOptions
  extends Pick<Environment, 'env' | 'clock' | 'runPlugin'>,
    Partial<Pick<Environment, 'readFile' | 'wallTime' | 'onPluginCertificate'>> {
  /** Path of a kubeconfig. */
  readonly kubeconfig?: string | undefined;
  /** Of the kubeconfig; without it, its current one. */
  readonly context?: string | undefined;
  /** URL of the API server; counts before the one in the kubeconfig. */
  readonly master?: string | undefined;
}

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Everything that can be checked without the server is. Rejects with a `JunctionError` that says what to correct. */
export async function loadAccess(options: LoadAccessOptions): Promise<ApiAccess> {
  const { kubeconfig = '', master = '', context } = options;
  const environment: Environment = {
    readFile: (path) => readFileFromDisk(path, 'utf8'),
    wallTime: Date.now,
    ...options,
  };
  if (kubeconfig !== '') return fromKubeconfig(kubeconfig, master, environment, context);
  if (master !== '') return fromAddress(master, environment);
  return fromCluster(environment);
}

async function fromKubeconfig(
  path: string,
  master: string,
  environment: Environment,
  chosen: string | undefined,
): Promise<ApiAccess> {
  const context = await readKubeconfig(path, master === '', environment, chosen);
  const { cluster, user } = context;
  const insecure = cluster.flag('insecure-skip-tls-verify');
  const hasAuthority = cluster.has('certificate-authority') || cluster.has('certificate-authority-data');
  if (insecure && hasAuthority) {
    throw cluster.bad(
      'insecure-skip-tls-verify',
      'cannot be true beside a certificate-authority',
      'Remove one of them.',
    );
  }
  const server = readKubeconfigServer(context, master, insecure || hasAuthority);
  const access = createAccess({
    origin: context.origin,
    namespace: context.namespace,
    server,
    host: writtenHost(master === '' ? cluster.text('server') : master),
    insecure,
    // It belongs to the server that the kubeconfig names, not to another.
    serverName: master === '' ? cluster.text('tls-server-name') || undefined : undefined,
    proxy: readProxy(cluster.text('proxy-url'), `${cluster.where}: proxy-url`),
    parts: [
      ...(insecure || hasAuthority ? [] : rootsFor(server, environment)),
      ...clusterParts(cluster),
      ...userParts(context, server, environment),
    ],
    environment,
  });
  // A plugin runs when it is needed: its own server may come up after us. What the cluster's part names is checked.
  if (!user.has('exec')) await access.identity();
  else checkIdentity(await join(clusterParts(cluster)), context.origin, environment.wallTime());
  return access;
}

async function join(parts: readonly IdentityPart[]): Promise<Identity> {
  let identity: Identity = {};
  for (const part of parts) identity = { ...identity, ...(await part.current()) };
  return identity;
}

function readKubeconfigServer({ cluster, user }: CurrentContext, master: string, speaksOfTls: boolean): URL {
  const hasCertificate = user.has('client-certificate') || user.has('client-certificate-data');
  const tls = speaksOfTls || hasCertificate;
  if (master !== '') return readServer(master, '--master', tls);
  if (!cluster.has('server')) {
    const hint = 'Set it to the URL of the API server, such as https://10.0.0.1:6443.';
    throw cluster.bad('server', 'is not set', hint);
  }
  return readServer(cluster.text('server'), `${cluster.where}: server`, tls);
}

function rootsFor(server: URL, environment: Environment): readonly IdentityPart[] {
  return server.protocol === 'https:' ? [systemRootsPart(environment)] : [];
}

function fromAddress(master: string, environment: Environment): ApiAccess {
  const server = readServer(master, '--master', false);
  const origin = `--master ${server.origin}`;
  const parts = rootsFor(server, environment);
  return createAccess({ origin, server, host: writtenHost(master), parts, environment });
}

async function fromCluster(environment: Environment): Promise<ApiAccess> {
  const { env } = environment;
  const host = env['KUBERNETES_SERVICE_HOST'] ?? '';
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '';
  if (host === '' || port === '') {
    const message =
      'no API server is given, and KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set';
    throw new JunctionError('KUBECONFIG_INVALID', message, {
      hint: 'Give --kubeconfig or --master, or run as a pod with a service account.',
    });
  }
  const origin = 'service account';
  const server = readServer(`https://${hostAndPort(host, port)}`, 'KUBERNETES_SERVICE_HOST', true);
  const file = (name: string): FileText => new FileText(`${ACCOUNT}/${name}`, origin, environment);
  const access = createAccess({
    origin,
    server,
    host: hostAndPort(host, port),
    parts: [
      certificatePart('ca', file('ca.crt')),
      tokenPart(file('token'), undefined, `${origin}: the token`),
    ],
    environment,
  });
  await access.identity();
  return access;
}

interface AccessParts extends Omit<ApiAccess, 'identity' | 'renew'> {
  readonly parts: readonly IdentityPart[];
  readonly environment: Environment;
}

function createAccess({ parts, environment, ...access }: AccessParts): ApiAccess {
  let checked: Identity | undefined;
  return {
    ...access,
    proxy: access.proxy ?? proxyFromEnvironment(access.server, environment.env),
    identity: async () => {
      const identity = await join(parts);
      const isKnown = checked?.certificate === identity.certificate && checked?.key === identity.key;
      if (!isKnown || checked?.ca !== identity.ca)
        checkIdentity(identity, access.origin, environment.wallTime());
      checked = identity;
      return identity;
    },
    renew: async () => parts.map((part) => part.renew()).includes(true),
  };
}
