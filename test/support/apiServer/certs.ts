import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type CertificateName = 'ca' | 'otherCa' | 'server' | 'expiredServer' | 'client' | 'expiredClient';

export function certificatePath(name: CertificateName): string {
  return fileURLToPath(new URL(`certs/${name}.crt`, import.meta.url));
}

export function keyPath(name: 'server' | 'client'): string {
  return fileURLToPath(new URL(`certs/${name}.key`, import.meta.url));
}

export function certificate(name: CertificateName): string {
  return readFileSync(certificatePath(name), 'utf8');
}

export function privateKey(name: 'server' | 'client'): string {
  return readFileSync(keyPath(name), 'utf8');
}
