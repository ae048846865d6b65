/** Whom to trust when nothing says it: the machine's own authorities, as kubectl does. Node.js would trust its own. */
import type { IdentityPart } from './parts.ts';
import type { Surroundings } from './surroundings.ts';

/** Debian, Fedora, SUSE, Alpine. */
const BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];

export function systemRootsPart({ env, readFile }: Surroundings): IdentityPart {
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
