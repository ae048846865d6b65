/** Who a kubeconfig says to be, and whom to trust. */
import type { CurrentContext } from './kubeconfig.ts';
import { execPart, readExecPlugin } from './execPlugin.ts';
import { FileText } from './fileText.ts';
import { certificatePart, type IdentityPart, passwordPart, type Text, tokenPart } from './parts.ts';
import type { Section } from './section.ts';
import type { Surroundings } from './surroundings.ts';

/** Fields that would make Junction somebody else, if they were left out silently. */
const UNSUPPORTED: Readonly<Record<string, string>> = {
  'auth-provider': 'Use exec with a credential plugin.',
  as: 'Give the credentials of the user that Junction is to be.',
  'as-uid': 'Give the credentials of the user that Junction is to be.',
  'as-groups': 'Give the credentials of the user that Junction is to be.',
};

export function clusterParts(context: CurrentContext, surroundings: Surroundings): readonly IdentityPart[] {
  const authority = textOf(context.cluster, 'certificate-authority', context, surroundings);
  return authority === undefined ? [] : [certificatePart('ca', authority)];
}

export function userParts(
  context: CurrentContext,
  server: URL,
  surroundings: Surroundings,
): readonly IdentityPart[] {
  const { user } = context;
  for (const [field, hint] of Object.entries(UNSUPPORTED)) {
    if (user.has(field)) throw user.bad(field, 'is not supported', hint);
  }
  return [
    ...certificates(context, surroundings),
    ...authorization(context, surroundings),
    ...(user.has('exec') ? [plugin(context, server, surroundings)] : []),
  ];
}

function certificates(context: CurrentContext, surroundings: Surroundings): readonly IdentityPart[] {
  const { user } = context;
  const certificate = textOf(user, 'client-certificate', context, surroundings);
  const key = textOf(user, 'client-key', context, surroundings);
  if (certificate !== undefined && key === undefined) throw user.bad('client-key', 'is not set');
  if (certificate === undefined && key !== undefined) throw user.bad('client-certificate', 'is not set');
  if (certificate === undefined || key === undefined) return [];
  return [certificatePart('certificate', certificate), certificatePart('key', key)];
}

function authorization(context: CurrentContext, surroundings: Surroundings): readonly IdentityPart[] {
  const { user } = context;
  const token = user.text('token') || undefined;
  const file = fileOf(user, 'tokenFile', context, surroundings);
  const name = user.text('username');
  const password = user.text('password');
  const hasToken = token !== undefined || file !== undefined;
  if (hasToken && name !== '')
    throw user.bad('username', 'cannot stand beside a token', 'Remove one of them.');
  if (hasToken)
    return [tokenPart(file, token, `${user.where}: ${file === undefined ? 'token' : 'tokenFile'}`)];
  return name === '' ? [] : [passwordPart(name, password)];
}

function plugin(
  { user, cluster, resolve }: CurrentContext,
  server: URL,
  surroundings: Surroundings,
): IdentityPart {
  const clusterInfo = (): Readonly<Record<string, unknown>> => ({
    server: server.href.replace(/\/$/, ''),
    ...(cluster.has('tls-server-name') ? { 'tls-server-name': cluster.text('tls-server-name') } : {}),
    ...(cluster.flag('insecure-skip-tls-verify') ? { 'insecure-skip-tls-verify': true } : {}),
    ...(cluster.has('certificate-authority-data')
      ? { 'certificate-authority-data': cluster.text('certificate-authority-data') }
      : {}),
    ...(cluster.has('proxy-url') ? { 'proxy-url': cluster.text('proxy-url') } : {}),
  });
  return execPart(readExecPlugin(user.section('exec'), resolve, clusterInfo), surroundings);
}

/** `FIELD-data`, else the file that `FIELD` names. */
function textOf(
  section: Section,
  field: string,
  context: CurrentContext,
  surroundings: Surroundings,
): Text | undefined {
  return section.decoded(`${field}-data`) ?? fileOf(section, field, context, surroundings);
}

function fileOf(
  section: Section,
  field: string,
  { resolve }: CurrentContext,
  surroundings: Surroundings,
): FileText | undefined {
  const path = section.text(field);
  return path === '' ? undefined : new FileText(resolve(path), `${section.where}: ${field}`, surroundings);
}
